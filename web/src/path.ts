// The critical path by operator, for runs whose path has hundreds of short segments with several operators each.

import { bar } from "./bars.ts";
import { type Context, sum } from "./context.ts";
import type { PathOperator } from "./data.ts";
import { el } from "./dom.ts";
import { grouped, percent } from "./figures.ts";
import { shortened } from "./lists.ts";
import { shown } from "./names.ts";

const FIRST = 12;

export function path(context: Context): HTMLElement | null {
  const { path_operators: operators, words } = context.data;
  const rows = byTime(operators);
  const longest_ms = rows[0]?.time_ms ?? 0;
  if (!longest_ms) return null;
  const whole_ms = sum(context.data.parts);
  return el(
    "section",
    { id: "path", "aria-labelledby": "path-title" },
    el("h2", { id: "path-title" }, "Critical path by operator"),
    shortened(
      el(
        "div",
        { class: "path-operators", role: "table", "aria-labelledby": "path-title" },
        head(context),
        ...rows.map((each) => row(context, each, longest_ms, whole_ms)),
      ),
      Math.min(FIRST, rows.filter((each) => context.figures.number(each.time_ms) !== ".").length || FIRST),
      1,
    ),
    el("p", { class: "aside small" }, `Time on the critical path, summed over all ${words.stages}; longest first.`),
  );
}

/** The operators with time on the critical path, longest first. */
export function byTime(operators: readonly PathOperator[]): (PathOperator & { readonly time_ms: number })[] {
  return operators
    .map((each) => ({ ...each, time_ms: sum(each.parts) }))
    .filter(({ time_ms }) => time_ms > 0)
    .sort((a, b) => b.time_ms - a.time_ms);
}

function row(
  context: Context,
  each: PathOperator & { readonly time_ms: number },
  longest_ms: number,
  whole_ms: number,
): HTMLElement {
  return el(
    "div",
    { class: "path-operator", role: "row" },
    el("span", { class: "name", role: "cell", title: shown(each.name) }, shown(each.name, 120)),
    el("span", { class: "figure count", role: "cell" }, grouped(each.stages)),
    el("span", { class: "figure", role: "cell" }, context.figures.number(each.time_ms)),
    el("span", { class: "figure share", role: "cell" }, percent(each.time_ms, whole_ms)),
    el("span", { class: "track", role: "cell" }, bar(context, each.parts, longest_ms)),
  );
}

function head(context: Context): HTMLElement {
  return el(
    "div",
    { class: "path-operator head", role: "row" },
    el("span", { class: "name", role: "columnheader" }, "operator"),
    el("span", { class: "figure count", role: "columnheader" }, context.data.words.stages),
    el("span", { class: "figure", role: "columnheader" }, `time [${context.figures.of.name}]`),
    el("span", { class: "figure share", role: "columnheader" }, "share"),
    el("span", { class: "track", role: "columnheader" }, "by resource"),
  );
}
