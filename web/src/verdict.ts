// The verdict, with the terminal's sentences: bottleneck, time by resource, recommendations, missing data.

import { bigBar } from "./bars.ts";
import type { Context } from "./context.ts";
import type { Recommendation } from "./data.ts";
import { copier, el } from "./dom.ts";
import { printable, tied } from "./names.ts";

export function verdict(context: Context): HTMLElement {
  const { said } = context.data;
  return el(
    "section",
    { id: "verdict", "aria-labelledby": "headline" },
    el("p", { class: "facts" }, ...said.facts.map((fact) => el("span", {}, printable(fact)))),
    headline(said.headline),
    ...said.outcome.map((each) => el("p", { class: "outcome" }, printable(each))),
    ...said.asides.map((each) => el("p", { class: "aside" }, printable(each))),
    bigBar(context, context.data.parts),
    said.other ? el("p", { class: "aside small" }, el("b", {}, "other: "), printable(said.other)) : null,
    el(
      "div",
      { class: "actions" },
      el("h2", {}, "What to do"),
      said.recommendations.length ? el("ol", {}, ...said.recommendations.map(recommendation)) : null,
      said.nothing_to_do ? el("p", {}, printable(said.nothing_to_do)) : null,
    ),
    notSeen(said.unseen, said.next),
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

function notSeen(unseen: readonly string[], next: string): HTMLElement | null {
  if (!unseen.length && !next) return null;
  return el(
    "aside",
    { class: "unseen", "aria-label": "Not seen" },
    ...unseen.map((each) => el("p", {}, el("b", {}, "Not seen: "), ...coded(each))),
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
