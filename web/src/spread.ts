// The spread of task durations of each stage, on one logarithmic axis: a ratio has the same length everywhere.

import type { Context } from "./context.ts";
import type { DagNode, Spread } from "./data.ts";
import { el } from "./dom.ts";
import { fixed, grouped } from "./figures.ts";
import { shortened } from "./lists.ts";
import { shown } from "./names.ts";
import { ofStage } from "./store.ts";

const FIRST = 12;
const SKEWED = 3; // ratio of the longest to the median above which it is set in bold

export function spreads(context: Context): HTMLElement | null {
  const { dag, words } = context.data;
  const rows = dag.nodes.flatMap((node, place) =>
    node.spread && node.tasks > 1 ? { node, place, at: node.spread } : [],
  );
  if (!rows.length) return null;
  rows.sort((a, b) => b.node.path_ms - a.node.path_ms || b.at.max - a.at.max);
  const low = Math.max(1, Math.min(...rows.map(({ at }) => at.min)));
  const axis = new Axis(low, Math.max(2 * low, ...rows.map(({ at }) => at.max)));
  return el(
    "section",
    { id: "spread", "aria-labelledby": "spread-title" },
    el("h2", { id: "spread-title" }, `Durations of the ${words.tasks} of each ${words.stage}`),
    shortened(
      el(
        "div",
        { class: "spreads" },
        head(context, axis),
        ...rows.map(({ node, place, at }) => row(context, node, place, at, axis)),
      ),
      FIRST,
      1,
    ),
    el(
      "p",
      { class: "aside small" },
      "Thin bar: shortest to longest. Thick bar: middle half. Mark: median. Last column: longest divided by median.",
    ),
  );
}

class Axis {
  constructor(
    readonly low: number,
    readonly high: number,
  ) {}

  /** Percent of the axis. */
  at(ms: number): number {
    return (100 * Math.log(Math.max(ms, this.low) / this.low)) / Math.log(this.high / this.low);
  }

  /** Powers of ten; on a short axis also 2 and 5 times these. */
  ticks(): number[] {
    const found: number[] = [];
    const steps = this.high / this.low > 50 ? [1] : [1, 2, 5];
    for (let power = 10 ** Math.floor(Math.log10(this.low)); power <= this.high; power *= 10)
      for (const step of steps) if (power * step >= this.low && power * step <= this.high) found.push(power * step);
    return found;
  }
}

function row(context: Context, node: DagNode, place: number, spread: Spread, axis: Axis): HTMLElement {
  const { store, figures } = context;
  const { min, p25, median, p75, max } = spread;
  const mark = (kind: string, from: number, to: number): HTMLElement => {
    const made = el("i", { class: kind });
    made.style.left = `${axis.at(from)}%`;
    if (to > from) made.style.width = `${axis.at(to) - axis.at(from)}%`;
    return made;
  };
  const title = `${shown(node.name)}: ${figures.range(min, max)}, median ${figures.text(median)}`;
  const made = el(
    "button",
    { type: "button", class: `spread${max > SKEWED * median ? " skewed" : ""}`, title },
    el("span", { class: "id" }, shown(node.id, 40)),
    el("span", { class: "count" }, grouped(node.tasks)),
    el(
      "span",
      { class: "plot", "aria-hidden": "true" },
      mark("all", min, max),
      mark("half", p25, p75),
      mark("median", median, median),
    ),
    el("span", { class: "figure" }, figures.number(median)),
    el("span", { class: "figure times" }, median > 0 ? `${fixed(max / median, 1)}x` : ""),
  );
  made.addEventListener("click", () => store.toggle(ofStage(place, shown(node.id, 40))));
  store.onChoice((choice) => made.classList.toggle("chosen", choice?.stages.has(place) ?? false));
  return made;
}

function head(context: Context, axis: Axis): HTMLElement {
  const { words } = context.data;
  const { figures } = context;
  const marks = axis.ticks().map((ms) => {
    const made = el("i", {}, String(Number((ms / figures.of.ms).toPrecision(3))));
    made.style.left = `${axis.at(ms)}%`;
    return made;
  });
  return el(
    "div",
    { class: "spread head" },
    el("span", { class: "id" }, words.stage),
    el("span", { class: "count" }, words.tasks),
    el("span", { class: "plot axis" }, ...marks),
    el("span", { class: "figure" }, `median [${figures.of.name}]`),
    el("span", { class: "figure times" }, "longest"),
  );
}
