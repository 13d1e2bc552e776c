// Reads the data of a comparison's page and adds the views to the page, the most important first.

import { bar, key } from "../bars.ts";
import { Tip } from "../canvas.ts";
import { choiceChip } from "../chip.ts";
import { partNames } from "../context.ts";
import { el, fill } from "../dom.ts";
import { printable, shown, tied } from "../names.ts";
import "../page.css";
import type { TableText } from "../page_data.ts";
import { Theming } from "../theme.ts";
import { coded } from "../verdict.ts";
import { type ComparisonContext, contextOf } from "./context.ts";
import { DifferenceView } from "./flame.ts";
import { Timelines } from "./timelines.ts";
import { waterfall } from "./waterfall.ts";

function start(): void {
  const [source, page] = [document.getElementById("crystalperf-data"), document.getElementById("page")];
  if (!source || !page) return;
  const context = contextOf(source.textContent ?? "");
  const { page_text, flames, before, after } = context.page;
  const theming = new Theming();
  const tip = new Tip();
  const ran = [before, after].some(({ timeline }) => timeline.tasks.lane.length);
  const views = [
    verdict(context),
    waterfall(context),
    ran ? new Timelines(context, theming, tip).element : null,
    flames ? new DifferenceView(context, flames, theming, tip).element : noFlames(page_text.no_flames),
    changes(context),
  ].filter((each) => each !== null);
  fill(
    page,
    header(context, views, theming),
    el("div", { class: "views" }, ...views),
    el("p", { class: "foot" }, `CrystalPerf ${printable(context.page.version)}`),
    tip.element,
  );
}

const SHORT: Readonly<Record<string, string>> = {
  verdict: "Verdict",
  parts: "Causes",
  timeline: "Timelines",
  flame: "Flame graph",
  changes: "Settings and plans",
};

function header({ page, store }: ComparisonContext, views: readonly HTMLElement[], theming: Theming): HTMLElement {
  const links = views.map(({ id }) => el("a", { href: `#${id}` }, SHORT[id] ?? id));
  const chip = choiceChip(store);
  return el(
    "div",
    { class: "top" },
    el("span", { class: "title" }, shown(page.page_text.title, 80)),
    el("nav", { "aria-label": "Views" }, ...links),
    chip,
    theming.toggle(),
  );
}

function verdict(context: ComparisonContext): HTMLElement {
  const { page, resources, figures } = context;
  const { page_text } = page;
  const names = partNames({ data: { resources } });
  const longest = Math.max(page.comparison.before.runtime_ms, page.comparison.after.runtime_ms);
  const side = (of: "before" | "after"): HTMLElement => {
    const { name, facts, resource_ms } = page[of];
    return el(
      "div",
      { class: "side" },
      el("h2", {}, of === "before" ? "Before" : "After"),
      el("p", { class: "facts" }, el("span", {}, shown(name, 120)), ...facts.map((fact) => el("span", {}, tied(fact)))),
      bar({ data: { resources }, figures }, resource_ms, longest, "tall"),
      el(
        "p",
        { class: "aside small" },
        names
          .filter((each) => figures.number(resource_ms[each] ?? 0) !== ".")
          .map((each) => `${page_text.devices[each] ?? each} ${figures.text(resource_ms[each] ?? 0)}`)
          .join(", "),
      ),
    );
  };
  return el(
    "section",
    { id: "verdict", "aria-labelledby": "headline" },
    el("h1", { id: "headline" }, tied(page_text.headline)),
    ...page_text.sentences.map((each) => el("p", { class: "aside" }, ...coded(each))),
    ...page_text.warnings.map((each) => el("p", { class: "outcome" }, ...coded(each))),
    ...page_text.predicted.map((each) => el("p", { class: "resource-prediction" }, ...coded(each))),
    el("div", { class: "sides" }, side("before"), side("after")),
    key(names, page_text.devices),
  );
}

function noFlames(text: string): HTMLElement | null {
  if (!text) return null;
  return el(
    "section",
    { id: "flame", "aria-labelledby": "flame-title" },
    el("h2", { id: "flame-title" }, "Differential flame graph"),
    el("p", {}, ...coded(text)),
  );
}

function changes({ page }: ComparisonContext): HTMLElement | null {
  const { settings, operators } = page.page_text;
  if (!settings.rows.length && !operators.rows.length) return null;
  return el(
    "section",
    { id: "changes", "aria-labelledby": "changes-title" },
    el("h2", { id: "changes-title" }, "Settings and plans"),
    table("settings-title", "Settings that differ", settings),
    table("operators-title", "Operators of the plans, in number", operators),
  );
}

function table(id: string, title: string, { heads, rows, note }: TableText): HTMLElement | null {
  if (!rows.length) return null;
  return el(
    "div",
    {},
    el("h3", { id }, title),
    el(
      "div",
      { class: "table", tabindex: 0, role: "region", "aria-labelledby": id },
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, ...heads.map((each) => el("th", { scope: "col" }, each)))),
        el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, shown(cell, 300)))))),
      ),
    ),
    note ? el("p", { class: "aside small" }, note) : null,
  );
}

start();
