// Reads the page's data and adds the views to the page, the most important first.

import { Tip } from "./canvas.ts";
import { choiceChip } from "./chip.ts";
import type { Context } from "./context.ts";
import { DagView, textures } from "./dag/view.ts";
import { el, fill } from "./dom.ts";
import { Figures } from "./figures.ts";
import { findings } from "./findings.ts";
import { FlameView } from "./flame/view.ts";
import { printable, shown } from "./names.ts";
import "./page.css";
import { path } from "./path.ts";
import { reading } from "./reading.ts";
import { spreads } from "./spread.ts";
import { stations } from "./stations.ts";
import { Store } from "./store.ts";
import { Theming } from "./theme.ts";
import { TimelineView } from "./timeline/view.ts";
import { verdict } from "./verdict.ts";
import { WhatIfView } from "./whatif/view.ts";

function start(): void {
  const [source, page] = [document.getElementById("crystalperf-data"), document.getElementById("page")];
  if (!source || !page) return;
  const data = reading(source.textContent ?? "");
  const { timeline, dag, flame } = data;
  const context: Context = {
    data,
    figures: new Figures(data.figure),
    store: new Store([timeline.start_ms, Math.max(timeline.start_ms + 1, timeline.end_ms)]),
  };
  const theming = new Theming();
  const tip = new Tip();
  const views = [
    verdict(context),
    path(context),
    data.what_if.settings.length ? new WhatIfView(context).element : null,
    stations(context),
    timeline.tasks.start.length || timeline.path.length ? new TimelineView(context, theming, tip).element : null,
    dag.nodes.some((each) => each.is_stage) ? new DagView(context).element : null,
    flame ? new FlameView(context, flame, theming, tip).element : null,
    findings(context),
    spreads(context),
  ].filter((each) => each !== null);
  fill(
    page,
    textures(),
    header(context, views, theming),
    el("div", { class: "views" }, ...views),
    el("p", { class: "foot" }, `CrystalPerf ${printable(data.version)}`),
    tip.element,
  );
}

const SHORT: Readonly<Record<string, string>> = {
  verdict: "Verdict",
  path: "Critical path",
  "what-if": "What if",
  stations: "Utilization",
  timeline: "Timeline",
  flame: "Flame graph",
  findings: "Findings",
  spread: "Spread",
};

function header(context: Context, views: readonly HTMLElement[], theming: Theming): HTMLElement {
  const { data, store } = context;
  const links = views.map(({ id }) => {
    const text = SHORT[id] ?? data.words.stages;
    return el("a", { href: `#${id}` }, `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`);
  });
  const chip = choiceChip(store);
  return el(
    "div",
    { class: "top" },
    el("span", { class: "title" }, shown(data.title, 80)),
    el("nav", { "aria-label": "Views" }, ...links),
    chip,
    theming.toggle(),
  );
}

start();
