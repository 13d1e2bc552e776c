// Bars of time by resource, and the legend of their colours and textures.

import { type Context, OTHER, partNames, sum, type TimelineContext } from "./context.ts";
import type { Parts } from "./data.ts";
import { el } from "./dom.ts";
import { percent } from "./figures.ts";
import { paintOf } from "./palette.ts";

/** The part of a context that a bar uses. */
export interface BarContext extends Pick<TimelineContext, "figures"> {
  readonly data: Pick<TimelineContext["data"], "resources">;
}

/** A swatch of a resource's colour and texture. */
export function swatch(name: string, place = 0): HTMLElement {
  return el("i", { class: `swatch ${paintClass(name, place)}`, "aria-hidden": "true" });
}

/** The CSS classes of a resource's colour and texture. */
export function paintClass(name: string, place: number): string {
  const paint = paintOf(name, place);
  return `paint ${paint.variable.slice(2)} ${paint.texture}`;
}

/** Time by resource as text: `cpu 49.5 s, net 41.4 s`. */
export function partsText(context: BarContext, parts: Parts): string {
  const names = partNames(context).filter((name) => context.figures.number(parts[name] ?? 0) !== ".");
  return names.map((name) => `${name} ${context.figures.text(parts[name] ?? 0)}`).join(", ");
}

/** A stacked bar; its full width is `whole_ms`. */
export function bar(context: BarContext, parts: Parts, whole_ms: number, classes = ""): HTMLElement {
  const made = el("span", { class: `bar ${classes}`, role: "img", "aria-label": partsText(context, parts) || "0" });
  partNames(context).forEach((name, place) => {
    const value = parts[name] ?? 0;
    if (value <= 0) return;
    const segment = el("span", { class: paintClass(name, place), title: `${name} ${context.figures.text(value)}` });
    segment.style.width = `${(100 * value) / (whole_ms || 1)}%`;
    made.append(segment);
  });
  return made;
}

/** The bar of the verdict, with a figure under each resource. */
export function bigBar(context: Context, parts: Parts): HTMLElement {
  const whole = sum(parts);
  const figures = el("dl", { class: "parts" });
  partNames(context).forEach((name, place) => {
    const value = parts[name] ?? 0;
    const device = context.data.resources.find((each) => each.name === name)?.device ?? name;
    figures.append(
      el(
        "div",
        { class: context.figures.number(value) === "." ? "none" : "" },
        el("dt", {}, swatch(name, place), device),
        el("dd", {}, context.figures.text(value), el("span", { class: "share" }, percent(value, whole))),
      ),
    );
  });
  return el("div", { class: "big-bar" }, bar(context, parts, whole, "tall"), figures);
}

/** The legend of colours below a picture. */
export function key(names: readonly string[], texts: Readonly<Record<string, string>> = {}): HTMLElement {
  const items = names.map((name, place) => el("li", {}, swatch(name, place), texts[name] ?? name));
  return el("ul", { class: "key", "aria-label": "colours" }, ...items);
}

export { OTHER };
