// Findings with their advice; labels that measurements contradict; assumptions of the predictions.

import type { Context } from "./context.ts";
import type { FindingText } from "./data.ts";
import { el } from "./dom.ts";
import { shortened } from "./lists.ts";
import { shown } from "./names.ts";
import { coded } from "./verdict.ts";

const FIRST = 6;

export function findings(context: Context): HTMLElement | null {
  const { page_text } = context.data;
  if (
    ![page_text.findings, page_text.disagreements, page_text.assumptions, page_text.measurements].some(
      (each) => each.length,
    )
  )
    return null;
  const longest = Math.max(1, ...page_text.findings.map((each) => each.cost_ms));
  const rows = page_text.findings.map((each) => finding(context, each, longest));
  return el(
    "section",
    { id: "findings", "aria-labelledby": "findings-title" },
    el("h2", { id: "findings-title" }, rows.length ? "Findings, by maximum cost" : "Findings"),
    rows.length ? shortened(el("ol", { class: "findings" }, ...rows), FIRST) : null,
    sentences("Index labels that the log contradicts; CrystalPerf uses the log", page_text.disagreements),
    sentences("Assumed", page_text.assumptions),
    sentences("Measured by the framework itself", page_text.measurements),
  );
}

function finding(context: Context, found: FindingText, longest_ms: number): HTMLElement {
  const cost = el("i");
  cost.style.width = `${(100 * found.cost_ms) / longest_ms}%`;
  const row = el(
    "li",
    {},
    el("div", { class: "cost" }, el("span", { class: "figure" }, found.cost), el("span", { class: "track" }, cost)),
    el(
      "div",
      {},
      el("p", { class: "what" }, ...coded(found.text), " ", el("span", { class: `basis ${found.basis}` }, found.basis)),
      found.advice ? el("p", { class: "advice" }, ...coded(found.advice)) : null,
    ),
  );
  const { nodes } = context.data.dag;
  const named = new Set(nodes.map((_, node) => node).filter((node) => names(found.text, nodes[node]!.id)));
  context.store.onChoice((choice) => {
    const about = choice === null || !named.size || [...choice.stages].some((node) => named.has(node));
    row.classList.toggle("faded", !about);
  });
  return row;
}

/** Whether a sentence names an id, and not a longer id with the same beginning. */
function names(sentence: string, id: string): boolean {
  const at = sentence.indexOf(id);
  return at >= 0 && !/\d/.test(sentence.charAt(at + id.length));
}

function sentences(title: string, all: readonly string[]): HTMLElement | null {
  if (!all.length) return null;
  return el(
    "div",
    { class: "sentences" },
    el("h3", {}, title),
    el("ul", {}, ...all.map((each) => el("li", {}, shown(each, 600)))),
  );
}
