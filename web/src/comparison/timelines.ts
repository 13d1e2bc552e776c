// The timelines of both sides on one time scale, with matched stages in the same colour, and the table of these stages.

import { key } from "../bars.ts";
import type { Tip } from "../canvas.ts";
import { partNames } from "../context.ts";
import { el } from "../dom.ts";
import { hiddenAfter } from "../lists.ts";
import { shown, tied } from "../names.ts";
import { type Paint, paintOf, type Texture } from "../palette.ts";
import { ofStage } from "../store.ts";
import type { Theming } from "../theme.ts";
import { type Colouring, TimelineView } from "../timeline/view.ts";
import { type ComparisonContext, stageLabel } from "./context.ts";

const COLOURS = 6;
const TEXTURES: readonly Texture[] = ["plain", "diagonal", "dots"];
const FIRST = 12;
const HEIGHT = 260;

/** The paint of a row of the stages by its rank: six colours, then the same with textures, then grey. */
export function stagePaint(rank: number): Paint {
  if (rank < 0 || rank >= COLOURS * TEXTURES.length) return { variable: "--other", texture: "plain" };
  return { variable: `--stage${(rank % COLOURS) + 1}`, texture: TEXTURES[Math.floor(rank / COLOURS)] ?? "plain" };
}

export class Timelines {
  readonly element: HTMLElement;
  #byStage = true;

  constructor(
    readonly context: ComparisonContext,
    theming: Theming,
    tip: Tip,
  ) {
    const { sides, page, resources } = context;
    const names = partNames({ data: { resources } });
    const byResource: Colouring = { paints: names.map(paintOf), of: (_, resource) => resource };
    const ranks = ranksOf(context);
    const grey = COLOURS * TEXTURES.length;
    const byStage: Colouring = {
      paints: Array.from({ length: grey + 1 }, (_, rank) => stagePaint(rank)),
      of: (stage) => Math.min(ranks[stage] ?? grey, grey),
    };
    const views = (["before", "after"] as const).map(
      (of, place) =>
        new TimelineView(sides[place]!, theming, tip, {
          id: `timeline-${of}`,
          title: `${of === "before" ? "Before" : "After"}: ${shown(page[of].name, 70)}`,
          heading: "h3",
          height: HEIGHT,
          colouring: () => (this.#byStage ? byStage : byResource),
          alone: false,
        }),
    );
    const legend = el("div", { hidden: true }, key(names, page.page_text.devices));
    const { words } = page.page_text;
    const chooser = el(
      "select",
      { "aria-label": "Colours of the timelines" },
      el("option", { value: "stage" }, `colours: ${words.stages} that match`),
      el("option", { value: "resource" }, "colours: resources"),
    );
    chooser.addEventListener("change", () => {
      this.#byStage = chooser.value === "stage";
      legend.hidden = this.#byStage;
      for (const each of views) each.recolour();
    });
    const tools = views[0]!.tools("Both runs");
    tools.prepend(chooser);
    this.element = el(
      "section",
      { id: "timeline", "aria-labelledby": "timelines-title" },
      el("div", { class: "section-head" }, el("h2", { id: "timelines-title" }, "Timelines"), tools),
      ...views.map((each) => each.element),
      legend,
      stages(context, ranks),
    );
  }
}

/** The rank of each row of the stages by its longer time; -1 for stages without any. */
function ranksOf({ page }: ComparisonContext): number[] {
  const rows = page.comparison.stages;
  const longest = (row: number): number => Math.max(rows[row]!.before_ms, rows[row]!.after_ms);
  const order = rows.map((_, row) => row).sort((a, b) => longest(b) - longest(a) || a - b);
  const ranks = new Array<number>(rows.length).fill(-1);
  order.forEach((row, rank) => {
    ranks[row] = rank;
  });
  return ranks;
}

/** The stages of both sides with their times: the same as the timelines show, as a table. */
function stages({ page, figures, store }: ComparisonContext, ranks: readonly number[]): HTMLElement | null {
  const { words } = page.page_text;
  const rows = page.comparison.stages.map((stage, row) => {
    const paint = stagePaint(ranks[row] ?? -1);
    const label = stageLabel(stage);
    const only = stage.before === null ? "only after" : stage.after === null ? "only before" : "";
    const choose = el(
      "button",
      { type: "button", class: "quiet", "aria-pressed": "false" },
      el("i", { class: `swatch paint ${paint.variable.slice(2)} ${paint.texture}`, "aria-hidden": "true" }),
      shown(label, 60),
    );
    choose.addEventListener("click", () => store.toggle(ofStage(row, shown(label, 40))));
    const made = el(
      "tr",
      {},
      el("th", { scope: "row" }, choose),
      el("td", { class: "name" }, shown(stage.name, 90), only ? el("span", { class: "basis" }, only) : null),
      el("td", { class: "figure" }, stage.before === null ? "–" : figures.number(stage.before_ms)),
      el("td", { class: "figure" }, stage.after === null ? "–" : figures.number(stage.after_ms)),
      el("td", { class: "figure" }, tied(figures.signed(stage.after_ms - stage.before_ms))),
    );
    store.onChoice((choice) => {
      const chosen = choice?.stages.has(row) ?? false;
      made.classList.toggle("chosen", chosen);
      choose.setAttribute("aria-pressed", String(chosen));
    });
    return made;
  });
  if (!rows.length) return null;
  const head = (text: string, figure = true): HTMLElement =>
    el("th", { scope: "col", class: figure ? "figure" : "" }, text);
  const table = el(
    "table",
    { class: "stages" },
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        head(words.stage, false),
        head("name", false),
        head(`before [${figures.of.name}]`),
        head(`after [${figures.of.name}]`),
        head("change"),
      ),
    ),
    el("tbody", {}, ...rows),
  );
  const title = `${words.stages} that match`;
  return el(
    "div",
    {},
    el("h3", { id: "stages-title" }, `${title.slice(0, 1).toUpperCase()}${title.slice(1)}, by change`),
    el("div", { class: "table", tabindex: 0, role: "region", "aria-labelledby": "stages-title" }, table),
    hiddenAfter(rows, FIRST),
  );
}
