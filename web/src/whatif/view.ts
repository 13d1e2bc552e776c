// The what-if view: a slider and a curve for each setting, and the predicted runtime with all settings together.

import { bar } from "../bars.ts";
import { type Context, sum } from "../context.ts";
import type { Answer, Point, Setting } from "../data.ts";
import { append, button, copier, el, fill } from "../dom.ts";
import { change } from "../figures.ts";
import { shortened } from "../lists.ts";
import { printable, shown, tied } from "../names.ts";
import { ofStage } from "../store.ts";
import { Curve } from "./curve.ts";
import { ask } from "./live.ts";
import { amountText, command, type Reading, read, stops } from "./model.ts";

const FIRST_STAGES = 10;

/** The card of one setting: its slider, and a function that sets the ratio. */
interface Card {
  readonly setting: Setting;
  readonly element: HTMLElement;
  ratio: number;
  readonly put: (ratio: number) => void;
}

export class WhatIfView {
  readonly element: HTMLElement;
  readonly #result = el("div", { class: "result", "aria-live": "polite" });
  readonly #stages: StageBars;
  readonly #cards: Card[];
  #asked: AbortController | null = null;

  constructor(readonly context: Context) {
    const { what_if, words } = context.data;
    this.#stages = new StageBars(context);
    const most = mostOf(context);
    this.#cards = what_if.settings.map((setting) => this.#card(setting, most));
    this.element = el(
      "section",
      { id: "what-if", "aria-labelledby": "what-if-title" },
      el("h2", { id: "what-if-title" }, "What if"),
      el(
        "div",
        { class: "what-if" },
        el("div", { class: "answer" }, this.#result, this.#usual()),
        el("div", { class: "cards" }, ...this.#cards.map((each) => each.element)),
      ),
      what_if.coarser ? el("p", { class: "aside small" }, printable(what_if.coarser)) : null,
      what_if.base.stages?.some((each) => each !== null)
        ? el(
            "h3",
            {},
            `Duration of each ${words.stage} `,
            el("span", { class: "unit" }, `[${context.figures.of.name}]`),
          )
        : null,
      this.#stages.element,
    );
    this.#show();
  }

  #card(setting: Setting, most_ms: number): Card {
    const ratios = stops(setting);
    const [low, high] = [ratios[0] ?? 0.5, ratios.at(-1) ?? 2];
    const place = (ratio: number): number => (high > low ? Math.log(ratio / low) / Math.log(high / low) : 0);
    const value = el("output", {});
    const slider = el("input", { type: "range", min: 0, max: 1, step: "any", "aria-label": setting.label });
    const curve = new Curve(setting, place, most_ms, this.context.data.what_if.base_ms);
    const put = (ratio: number): void => {
      card.ratio = ratio;
      slider.value = String(place(ratio));
      const text = amountText(setting, ratio);
      value.textContent = text;
      const alone = read(this.context.data.what_if, new Map([[setting.key, ratio]]));
      slider.setAttribute("aria-valuetext", `${text}, ${this.context.data.page_text.how[alone.how]}`);
      curve.show(ratio, alone.answer?.predicted_ms ?? null);
      card.element.classList.toggle("moved", ratio !== 1);
    };
    const move = (ratio: number): void => {
      if (ratio === card.ratio) slider.value = String(place(ratio));
      else {
        put(ratio);
        this.#show();
      }
    };
    slider.addEventListener("input", () => move(nearest(ratios, place, Number(slider.value))));
    slider.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      const grid = { PageUp: 1, PageDown: -1 }[event.key];
      const steps = grid ? setting.points.map((each) => each.ratio) : ratios;
      const next = neighbour(steps, card.ratio, by ?? grid ?? 0);
      if (by === undefined && grid === undefined) return;
      event.preventDefault();
      move(next);
    });
    const refused = setting.points.every((each) => each.predicted_ms === null || each.ratio === 1);
    const reason = setting.points.find((each) => each.refused !== null)?.refused;
    const card: Card = {
      setting,
      ratio: 1,
      put,
      element: el(
        "div",
        { class: `card${refused ? " refused" : ""}` },
        el(
          "div",
          { class: "card-head" },
          el("span", { class: "label", title: printable(setting.label) }, printable(setting.label)),
          value,
        ),
        refused && reason ? el("p", { class: "reason", title: printable(reason) }, shown(reason, 160)) : curve.element,
        slider,
        ticks(setting, place, move),
      ),
    };
    put(1);
    return card;
  }

  /** The usual what-ifs, as in the terminal; each button sets the sliders. */
  #usual(): HTMLElement {
    const { page_text, what_if } = this.context.data;
    const rows = page_text.usual.map(({ question, setting, runtime, change: by }) => {
      const row = el(
        "button",
        { type: "button", title: setting },
        el("span", {}, printable(question)),
        el("span", { class: "figure" }, runtime),
        el("span", { class: "figure" }, by),
      );
      row.addEventListener("click", () => {
        for (const card of this.#cards) {
          const point = what_if.settings
            .find(({ key }) => key === card.setting.key)
            ?.points.find((each) => each.setting === setting);
          card.put(point?.ratio ?? 1);
        }
        this.#show();
      });
      return el("li", {}, row);
    });
    const sentences = [page_text.same, ...page_text.unknown, page_text.check].filter(Boolean);
    return el(
      "div",
      { class: "usual" },
      rows.length ? el("ul", {}, ...rows) : null,
      ...sentences.map((each) => el("p", { class: "aside small" }, tied(each))),
    );
  }

  #show(): void {
    this.#asked?.abort();
    const chosen = new Map(this.#cards.map((each) => [each.setting.key, each.ratio]));
    const reading = read(this.context.data.what_if, chosen);
    this.#render(reading);
    const live = this.context.data.live;
    if (!live || (reading.how !== "unknown" && reading.how !== "between")) return;
    const asked = new AbortController();
    this.#asked = asked;
    void ask(live.predict, reading.settings, this.context.data, asked.signal).then((answer) => {
      if (answer && !asked.signal.aborted)
        this.#render({ ...reading, how: answer.refused === null ? "exact" : "refused", answer });
    });
  }

  #render(reading: Reading): void {
    const { answer, how, settings } = reading;
    const { what_if } = this.context.data;
    const { figures } = this.context;
    const ms = answer?.predicted_ms ?? null;
    const line = command(what_if, settings);
    fill(
      this.#result,
      el(
        "div",
        { class: "result-head" },
        el("span", { class: `how ${how}` }, this.context.data.page_text.how[how]),
        settings.length > 0 && button("Reset", () => this.reset(), { class: "quiet" }),
      ),
      el(
        "p",
        { class: "predicted" },
        el("strong", {}, ms === null ? "–" : `${how === "between" ? "≈ " : ""}${figures.text(ms)}`),
        ms !== null && how !== "recorded" && el("span", { class: "change" }, change(ms, what_if.base_ms)),
      ),
      this.#range(answer),
      answer?.refused ? el("p", { class: "reason" }, printable(answer.refused)) : null,
      this.#path(answer, how),
    );
    if (settings.length) {
      append(this.#result, [
        el(
          "div",
          { class: "paste" },
          el("pre", {}, el("code", {}, line)),
          copier(() => line),
        ),
      ]);
    }
    this.#stages.show(answer, how);
  }

  /** The 90 % range on an axis from zero, with a mark at the recorded runtime. */
  #range(answer: Answer | null): HTMLElement | null {
    const { what_if } = this.context.data;
    const { figures } = this.context;
    const { low_ms, high_ms, predicted_ms } = answer ?? { low_ms: null, high_ms: null, predicted_ms: null };
    if (low_ms === null || high_ms === null || predicted_ms === null) return null;
    const whole = 1.05 * Math.max(high_ms, 1.6 * what_if.base_ms);
    const mark = (kind: string, from: number, to: number): HTMLElement => {
      const made = el("i", { class: kind });
      made.style.left = `${(100 * from) / whole}%`;
      made.style.width = `${(100 * (to - from)) / whole}%`;
      return made;
    };
    return el(
      "div",
      { class: "range" },
      el(
        "div",
        { class: "range-bar", "aria-hidden": "true" },
        mark("span", low_ms, high_ms),
        mark("at", predicted_ms, predicted_ms),
        mark("was", what_if.base_ms, what_if.base_ms),
      ),
      el("p", {}, `90 % range: ${figures.range(low_ms, high_ms)}`),
    );
  }

  /** The recorded critical path by resource, and below it the predicted one. */
  #path(answer: Answer | null, how: Reading["how"]): HTMLElement | null {
    const { data } = this.context;
    const base = data.what_if.base.path_parts;
    if (!base) return null;
    const whole = Math.max(sum(base), answer?.path_parts ? sum(answer.path_parts) : 0);
    const row = (label: string, parts: typeof base, bottleneck: string | null): HTMLElement =>
      el(
        "div",
        { class: "path-row" },
        el("span", { class: "label" }, label),
        bar(this.context, parts, whole),
        el("span", { class: "bottleneck" }, bottleneck ? (data.called[bottleneck] ?? printable(bottleneck)) : ""),
      );
    return el(
      "div",
      { class: "path-bars" },
      el("span", { class: "caption" }, "critical path"),
      el("span", { class: "caption right" }, "bottleneck"),
      row("recorded", base, data.what_if.base.bottleneck),
      how !== "recorded" && answer?.path_parts ? row("predicted", answer.path_parts, answer.bottleneck) : null,
    );
  }

  /** Sets all settings as recorded. */
  reset(): void {
    for (const card of this.#cards) card.put(1);
    this.#show();
  }
}

/** The top of the axis of all curves, the same for all so that they can be compared. */
function mostOf(context: Context): number {
  const { what_if } = context.data;
  const all = what_if.settings.flatMap((each) => each.points.map((point) => point.predicted_ms ?? 0));
  return 1.1 * Math.max(1.25 * what_if.base_ms, Math.min(2.5 * what_if.base_ms, Math.max(0, ...all)));
}

function nearest(ratios: readonly number[], place: (ratio: number) => number, at: number): number {
  return ratios.reduce((best, each) => (Math.abs(place(each) - at) < Math.abs(place(best) - at) ? each : best), 1);
}

function neighbour(ratios: readonly number[], ratio: number, by: number): number {
  if (by > 0) return ratios.find((each) => each > ratio * (1 + 1e-9)) ?? ratio;
  if (by < 0) return ratios.findLast((each) => each < ratio * (1 - 1e-9)) ?? ratio;
  return ratio;
}

/** The share of the shortest slider's length that a label and each of its characters need. */
const [NAME, CHARACTER] = [0.045, 0.034];

/** The grid's points as buttons below the slider: the recorded one, both ends, and others if their labels fit. */
function ticks(setting: Setting, place: (ratio: number) => number, move: (ratio: number) => void): HTMLElement {
  const { points } = setting;
  const plain = (ratio: number): number => (Number.isInteger(Math.log2(ratio)) ? 0 : 1);
  const wanted = [
    ...points.filter((each) => each.ratio === 1),
    ...[points[0], points.at(-1)].filter((each) => each !== undefined),
    ...points.toSorted((a, b) => plain(a.ratio) - plain(b.ratio)),
  ];
  const needed = (one: Point, other: Point): number => NAME + (CHARACTER * (one.text.length + other.text.length)) / 2;
  const named: Point[] = [];
  for (const each of wanted)
    if (named.every((other) => Math.abs(place(each.ratio) - place(other.ratio)) >= needed(each, other)))
      named.push(each);
  const made = named.map((each) => {
    const tick = button(each.text, () => move(each.ratio), {
      class: each.refused === null ? "" : "refused",
      tabindex: -1, // the slider's own keys reach them
      title: each.refused ?? each.setting,
    });
    tick.style.left = `calc(var(--inset) + (100% - 2 * var(--inset)) * ${place(each.ratio).toFixed(4)})`;
    return tick;
  });
  return el("div", { class: "ticks" }, ...made);
}

interface StageRow {
  readonly node: number;
  readonly row: HTMLElement;
  /** The predicted duration: a bar, the figure, the change. */
  readonly then: HTMLElement;
  readonly figure: HTMLElement;
  readonly by: HTMLElement;
}

/** A bar for each stage: its recorded and its predicted duration. */
class StageBars {
  readonly element: HTMLElement;
  readonly #rows: readonly StageRow[];
  readonly #whole: number;

  constructor(readonly context: Context) {
    const { dag, what_if } = context.data;
    const base = what_if.base.stages ?? [];
    const order = dag.nodes.map((_, node) => node).filter((node) => (base[node] ?? 0) > 0);
    order.sort((a, b) => (base[b] ?? 0) - (base[a] ?? 0));
    this.#whole = 1.25 * Math.max(1, ...order.map((node) => base[node] ?? 0));
    this.#rows = order.map((node) => this.#row(node));
    const list = el("div", { class: "stage-bars" }, ...this.#rows.map((each) => each.row));
    this.element = shortened(list, FIRST_STAGES);
    context.store.onChoice((choice) => {
      for (const each of this.#rows) each.row.classList.toggle("chosen", choice?.stages.has(each.node) ?? false);
    });
  }

  #row(node: number): StageRow {
    const { data, store, figures } = this.context;
    const [then, was] = [el("i", { class: "then" }), el("i", { class: "was" })];
    const base = data.what_if.base.stages?.[node] ?? 0;
    was.style.width = `${(100 * base) / this.#whole}%`;
    const [figure, by] = [el("span", { class: "figure" }), el("span", { class: "figure" })];
    const { id, name } = data.dag.nodes[node]!;
    const row = el(
      "button",
      { type: "button", class: "stage-row", title: shown(name) },
      el("span", { class: "id" }, shown(id, 40)),
      el("span", { class: "name" }, shown(name, 80)),
      el("span", { class: "figure was" }, figures.number(base)),
      el("span", { class: "track", "aria-hidden": "true" }, was, then),
      figure,
      by,
    );
    row.addEventListener("click", () => store.toggle(ofStage(node, shown(id, 40))));
    return { row, then, figure, by, node };
  }

  show(answer: Answer | null, how: Reading["how"]): void {
    const { what_if } = this.context.data;
    for (const { then, figure, by, node } of this.#rows) {
      const ms = answer?.stages?.[node] ?? null;
      const base = what_if.base.stages?.[node] ?? 0;
      then.hidden = ms === null || how === "recorded";
      then.style.width = `${Math.min(100, (100 * (ms ?? 0)) / this.#whole)}%`;
      const same = how === "recorded" || ms === null;
      figure.textContent = same ? "" : `${this.context.figures.number(ms)}`;
      by.textContent = same ? "" : change(ms, base);
    }
  }
}
