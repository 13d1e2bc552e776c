// The waterfall: bars from the runtime before to the runtime after, one for each part of the difference, as a table.

import { el } from "../dom.ts";
import { percent } from "../figures.ts";
import { shown, tied } from "../names.ts";
import { coded } from "../verdict.ts";
import type { ComparisonContext } from "./context.ts";
import type { PartText } from "./page_data.ts";

const MOST_STAGES = 4;

/** The interval of the axis: from zero, unless the changes are small next to the runtimes. */
export function axisOf(from_ms: number, parts: readonly { readonly ms: number }[]): readonly [number, number] {
  let [at, low, high] = [from_ms, from_ms, from_ms];
  for (const { ms } of parts) {
    at += ms;
    low = Math.min(low, at);
    high = Math.max(high, at);
  }
  const span = high - low;
  if (span >= 0.15 * high || span <= 0) return [Math.min(0, low), Math.max(high, 1)];
  return [Math.max(0, low - 2 * span), high];
}

export function waterfall(context: ComparisonContext): HTMLElement {
  const { page_text, comparison } = context.page;
  const { before, after } = comparison;
  const axis = axisOf(before.runtime_ms, page_text.parts);
  let at = before.runtime_ms;
  const rows = page_text.parts.map((part) => {
    const from = at;
    at += part.ms;
    return partRow(context, part, from, at, axis);
  });
  const { figures } = context;
  const figure = (text: string): HTMLElement => el("td", { class: "figure" }, tied(text));
  const end = (label: string, ms: number, change: string): HTMLElement =>
    el("tr", { class: "end" }, el("th", { scope: "row" }, label), track(axis, axis[0], ms, "whole"), figure(change));
  return el(
    "section",
    { id: "parts", "aria-labelledby": "parts-title" },
    el("h2", { id: "parts-title" }, "Where the difference comes from"),
    page_text.parts.length
      ? el(
          "div",
          { class: "table", tabindex: 0, role: "region", "aria-label": "table of causes" },
          el(
            "table",
            { class: "waterfall" },
            el(
              "thead",
              {},
              el(
                "tr",
                {},
                el("th", { scope: "col" }, "cause"),
                el("th", { scope: "col" }, axis[0] > 0 ? `time, from ${figures.text(axis[0])} on` : "time"),
                el("th", { scope: "col", class: "figure" }, "change"),
              ),
            ),
            el(
              "tbody",
              {},
              end("before", before.runtime_ms, figures.text(before.runtime_ms)),
              ...rows,
              end("after", after.runtime_ms, figures.text(after.runtime_ms)),
            ),
          ),
        )
      : el("p", {}, ...coded(page_text.no_parts)),
  );
}

function partRow(
  context: ComparisonContext,
  part: PartText,
  from: number,
  to: number,
  axis: readonly [number, number],
): HTMLElement {
  const { figures, page } = context;
  const { change_ms } = page.comparison;
  const share = part.ms * change_ms > 0 ? percent(Math.abs(part.ms), Math.abs(change_ms)) : "";
  const stages = part.stages.slice(0, MOST_STAGES).map((each) => shown(each, 90));
  const more = part.stages.length - stages.length;
  return el(
    "tr",
    {},
    el(
      "th",
      { scope: "row" },
      el(
        "p",
        {},
        ...coded(part.text),
        part.basis ? " " : null,
        part.basis ? el("span", { class: `basis ${part.basis}` }, part.basis) : null,
      ),
      stages.length
        ? el("p", { class: "aside small" }, `${stages.join(", ")}${more > 0 ? `, and ${more} more` : ""}`)
        : null,
    ),
    track(axis, from, to, part.ms > 0 ? "rise" : "fall"),
    el(
      "td",
      { class: "figure" },
      el("strong", {}, tied(figures.signed(part.ms))),
      share ? el("span", { class: "share" }, share) : null,
    ),
  );
}

/** A bar between two times; the figure next to it says the same. */
function track(
  axis: readonly [number, number],
  from: number,
  to: number,
  kind: "whole" | "rise" | "fall",
): HTMLElement {
  const at = (ms: number): number => (100 * (ms - axis[0])) / (axis[1] - axis[0] || 1);
  const bar = el("i", { class: kind === "whole" ? "whole" : `paint ${kind}3` });
  bar.style.left = `${at(Math.min(from, to))}%`;
  bar.style.width = `${Math.abs(at(to) - at(from))}%`;
  return el("td", { class: "track-cell" }, el("div", { class: "track", "aria-hidden": "true" }, bar));
}
