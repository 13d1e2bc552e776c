// The verdict, with the terminal's sentences: bottleneck, time by resource, recommendations, missing data.

import { bigBar } from "./bars.ts";
import type { Context } from "./context.ts";
import type { PageText, Recommendation } from "./data.ts";
import { copier, el } from "./dom.ts";
import { printable, tied } from "./names.ts";

export function verdict(context: Context): HTMLElement {
  const { page_text } = context.data;
  return el(
    "section",
    { id: "verdict", "aria-labelledby": "headline" },
    el("p", { class: "facts" }, ...page_text.facts.map((fact) => el("span", {}, printable(fact)))),
    headline(page_text.headline),
    ...page_text.outcome.map((each) => el("p", { class: "outcome" }, printable(each))),
    ...page_text.asides.map((each) => el("p", { class: "aside" }, printable(each))),
    bigBar(context, context.data.parts),
    page_text.other ? el("p", { class: "aside small" }, el("b", {}, "other: "), printable(page_text.other)) : null,
    el(
      "div",
      { class: "actions" },
      el("h2", {}, "What to do"),
      page_text.recommendations.length ? el("ol", {}, ...page_text.recommendations.map(recommendation)) : null,
      page_text.nothing_to_do ? el("p", {}, printable(page_text.nothing_to_do)) : null,
    ),
    missingData(page_text),
  );
}

/** A heading: the first sentence in large letters, the following ones in smaller letters. */
function headline(text: string): HTMLElement {
  const [, first = text, rest = ""] = /^(.+?[.](?=\s\p{Lu}))\s(.+)$/su.exec(text) ?? [];
  const following = rest ? el("span", { class: "next" }, ` ${tied(rest)}`) : null;
  return el("h1", { id: "headline" }, tied(first), following);
}

function recommendation(each: Recommendation): HTMLElement {
  return el(
    "li",
    {},
    el("div", {}, el("p", { class: "what" }, ...coded(each.text)), each.lines.length ? pasted(each.lines) : null),
    each.saving ? el("p", { class: "gain" }, tied(each.saving)) : null,
  );
}

function missingData({ missing, not_recorded, next }: PageText): HTMLElement | null {
  if (!missing.length && !not_recorded.length && !next) return null;
  const labelled = (label: string, all: readonly string[]): HTMLElement[] =>
    all.map((each) => el("p", {}, el("b", {}, `${label}: `), ...coded(each)));
  return el(
    "aside",
    { class: "missing-data", "aria-label": "Missing data" },
    ...labelled("Missing from the input", missing),
    ...labelled("Not recorded", not_recorded),
    next ? el("p", {}, el("b", {}, "Next: ")) : null,
    next ? pasted([next]) : null,
  );
}

/** Lines to paste, with a button that copies them. */
export function pasted(lines: readonly string[]): HTMLElement {
  const text = lines.map(printable).join("\n");
  return el(
    "div",
    { class: "paste" },
    el("pre", {}, el("code", {}, text)),
    copier(() => text),
  );
}

/** A sentence with the text between backquotes set as code. */
export function coded(sentence: string): (HTMLElement | string)[] {
  return tied(sentence)
    .split("`")
    .map((part, index) => (index % 2 ? el("code", {}, part) : part));
}
