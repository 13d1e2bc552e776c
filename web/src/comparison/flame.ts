// The differential flame graph: boxes coloured by change, orange for more time and blue for less, with the sign as text.

import type { Tip } from "../canvas.ts";
import { type Child, el } from "../dom.ts";
import { change as changeText, percent } from "../figures.ts";
import {
  type Change,
  type Choice,
  changeOf,
  differenceTree,
  type FlameChange,
  RATIOS,
  STRONGEST,
  stepOf,
  type Width,
} from "../flame/difference.ts";
import { type BoxFill, type Content, FlamePicture, type Shown, term, toggled } from "../flame/picture.ts";
import type { Tree } from "../flame/tree.ts";
import { hiddenAfter } from "../lists.ts";
import { cutLeft, printable, shown, tied } from "../names.ts";
import { colour, inkOn, type Paint, pattern } from "../palette.ts";
import type { Theming } from "../theme.ts";
import type { ComparisonContext } from "./context.ts";
import type { PageFlames } from "./page_data.ts";

const FIRST = 10;
const STEPS = Array.from({ length: 2 * STRONGEST + 1 }, (_, place) => place - STRONGEST);

/** The paint of a step: less time has a texture too, so that the page reads in grey. */
export function stepPaint(step: number): Paint {
  if (step === 0) return { variable: "--even", texture: "plain" };
  return step > 0
    ? { variable: `--rise${step}`, texture: "plain" }
    : { variable: `--fall${-step}`, texture: "diagonal" };
}

export class DifferenceView implements Content {
  readonly element: HTMLElement;
  readonly label = "Differential flame graph";
  readonly names: readonly string[];
  readonly #flame: FlameChange;
  readonly #picture: FlamePicture;
  #choice: Choice = { kind: null, shares: false, width: "both" };

  constructor(
    readonly context: ComparisonContext,
    flames: PageFlames,
    theming: Theming,
    tip: Tip,
  ) {
    const kinds = Object.keys(flames.sampled.before_ms);
    this.names = flames.frames.map((each) => shown(each));
    this.#flame = {
      kinds,
      frames: flames.frames,
      parent: flames.parent,
      frame: flames.frame,
      self: {
        node: flames.sampled.node,
        before: kinds.map((kind) => flames.sampled.before_ms[kind] ?? []),
        after: kinds.map((kind) => flames.sampled.after_ms[kind] ?? []),
        variance: flames.sampled.variance_ms2,
      },
      total_ms: flames.total_ms,
      deviations: flames.noise_deviations,
    };
    this.#picture = new FlamePicture(this, theming, tip);
    this.element = el(
      "section",
      { id: "flame", "aria-labelledby": "flame-title" },
      el(
        "div",
        { class: "section-head" },
        el("h2", { id: "flame-title" }, "Differential flame graph"),
        this.#picture.tools(...this.#controls(kinds)),
      ),
      this.#picture.canvas,
      el(
        "div",
        { class: "under" },
        legend(),
        flames.coarsened ? el("p", { class: "aside small" }, printable(flames.coarsened)) : null,
      ),
      this.#picture.detail,
      functions(context, flames),
    );
  }

  #set(choice: Partial<Choice>): void {
    this.#choice = { ...this.#choice, ...choice };
    this.#picture.again();
  }

  #controls(kinds: readonly string[]): HTMLElement[] {
    const chooser = (label: string, options: readonly (readonly [string, string])[], act: (value: string) => void) => {
      const made = el(
        "select",
        { "aria-label": label },
        ...options.map(([value, text]) => el("option", { value }, text)),
      );
      made.addEventListener("change", () => act(made.value));
      return made;
    };
    const ofKind = kinds.map((name, place) => [String(place), name] as const);
    return [
      chooser("Resource", [["", "all resources"], ...ofKind], (value) =>
        this.#set({ kind: value === "" ? null : Number(value) }),
      ),
      chooser(
        "Width of a box",
        [
          ["both", "width: mean of both"],
          ["before", "width: before"],
          ["after", "width: after"],
        ],
        (value) => this.#set({ width: value as Width }),
      ),
      toggled("Shares", "Compare shares of the sampled time, such as for runs of different input", (on) =>
        this.#set({ shares: on }),
      ),
    ];
  }

  tree(inverted: boolean): Tree {
    return differenceTree(this.#flame, inverted, this.#choice);
  }

  fills(brush: CanvasRenderingContext2D, scale: number): BoxFill[] {
    return STEPS.map((step) => {
      const paint = stepPaint(step);
      const plate = colour(paint.variable);
      return { fill: pattern(brush, paint, scale), plate, ink: inkOn(plate) };
    });
  }

  #change(tree: Tree, node: number): Change {
    return changeOf(this.#flame, tree, node, this.#choice);
  }

  #step(tree: Tree, node: number): number {
    return stepOf(this.#change(tree, node), this.#flame.deviations);
  }

  fillOf(tree: Tree, node: number): number {
    return this.#step(tree, node) + STRONGEST;
  }

  prefix(tree: Tree, node: number): string {
    if (!this.#step(tree, node)) return "";
    const { before, after } = this.#change(tree, node);
    return this.context.figures.signed(after - before);
  }

  counted({ tree }: Shown, matches: ReadonlySet<number>): string {
    let [before, after] = [0, 0];
    const inside = new Uint8Array(tree.parent.length);
    for (let node = 1; node < tree.parent.length; node += 1) {
      inside[node] = inside[tree.parent[node]!]!;
      if (inside[node] || !matches.has(tree.frame[node]!)) continue;
      inside[node] = 1;
      const found = this.#change(tree, node);
      before += found.before;
      after += found.after;
    }
    return this.#text({ before, after, noise: 0 });
  }

  /** `4.0 → 1.0 s, -3.0 s (-75 %)`. */
  #text({ before, after }: Change): string {
    const { figures } = this.context;
    const ratio = before > 0 && after > 0 ? changeText(after, before) : before > 0 ? "gone" : "new";
    return `${figures.number(before)} → ${figures.text(after)}, ${figures.signed(after - before)} (${ratio})`;
  }

  #noise(change: Change): string {
    const { figures } = this.context;
    const limit = figures.text(this.#flame.deviations * change.noise);
    return stepOf(change, this.#flame.deviations)
      ? `beyond the noise of sampling, ${limit}`
      : `no change beyond the noise of sampling, ${limit}`;
  }

  lines({ tree }: Shown, node: number): string[] {
    const change = this.#change(tree, node);
    return [cutLeft(this.names[tree.frame[node]!]!, 90), this.#text(change), this.#noise(change)];
  }

  detail({ tree }: Shown, node: number): Child[] {
    const { figures, page } = this.context;
    const runs = page.flames?.runs ?? [1, 1];
    if (node < 0) {
      const whole = this.#change(tree, 0);
      const mean = runs.some((each) => each > 1) ? `, mean of ${runs[0]} runs before and ${runs[1]} after` : "";
      const scaled = this.#choice.shares ? ", scaled to the time before" : "";
      return [
        el("p", { class: "aside" }, tied(`${page.page_text.words.task} time: ${this.#text(whole)}${mean}${scaled}`)),
      ];
    }
    const change = this.#change(tree, node);
    const kinds = this.#flame.kinds
      .map((name, kind) => ({ name, ...changeOf(this.#flame, tree, node, { ...this.#choice, kind }) }))
      .filter(({ before, after }) => before > 0 || after > 0)
      .sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before))
      .map(({ name, before, after }) => `${name} ${figures.signed(after - before)}`);
    return [
      el("p", { class: "frame-name" }, this.names[tree.frame[node]!]!),
      el(
        "dl",
        {},
        term("before", `${figures.text(change.before)} (${percent(change.before, this.#change(tree, 0).before)})`),
        term("after", `${figures.text(change.after)} (${percent(change.after, this.#change(tree, 0).after)})`),
        term("change", `${figures.signed(change.after - change.before)}, ${this.#noise(change)}`),
        term("by resource", kinds.join(", ")),
      ),
    ];
  }
}

/** The legend of the steps, from gone to new. */
function legend(): HTMLElement {
  const times = RATIOS.map((each) => `${each}x`);
  const text = (step: number): string => {
    const size = Math.abs(step);
    const sign = step > 0 ? "+" : "−";
    if (size === 0) return "no change beyond noise";
    if (size === STRONGEST) return `${sign} at least ${times.at(-1)}, or ${step > 0 ? "new" : "gone"}`;
    return `${sign} up to ${times[size - 1]}`;
  };
  const items = STEPS.map((step) => {
    const { variable, texture } = stepPaint(step);
    return el(
      "li",
      {},
      el("i", { class: `swatch paint ${variable.slice(2)} ${texture}`, "aria-hidden": "true" }),
      text(step),
    );
  });
  return el("ul", { class: "key", "aria-label": "colours: more time is orange, less time is blue" }, ...items);
}

/** The functions that changed most, as a table: the flame graph for those who do not see it. */
function functions({ figures }: ComparisonContext, flames: PageFlames): HTMLElement | null {
  if (!flames.functions.length) return null;
  const rows = flames.functions.map((each) =>
    el(
      "tr",
      { class: each.beyond_noise ? "" : "quiet-row" },
      el("th", { scope: "row", class: "function" }, shown(each.name)),
      el("td", {}, each.kind),
      el("td", { class: "figure" }, figures.number(each.before_ms)),
      el("td", { class: "figure" }, figures.number(each.after_ms)),
      el("td", { class: "figure" }, tied(figures.signed(each.change_ms))),
      el("td", {}, each.beyond_noise ? "beyond noise" : "within noise"),
    ),
  );
  const head = (text: string, figure = false): HTMLElement =>
    el("th", { scope: "col", class: figure ? "figure" : "" }, text);
  return el(
    "div",
    {},
    el("h3", { id: "functions-title" }, "Functions by change of their sampled time"),
    el(
      "div",
      { class: "table", tabindex: 0, role: "region", "aria-labelledby": "functions-title" },
      el(
        "table",
        { class: "functions" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            head("function"),
            head("resource"),
            head(`before [${figures.of.name}]`, true),
            head(`after [${figures.of.name}]`, true),
            head("change", true),
            head("sampling"),
          ),
        ),
        el("tbody", {}, ...rows),
      ),
    ),
    hiddenAfter(rows, FIRST),
  );
}
