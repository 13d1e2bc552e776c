// The flame graph of sampled stacks, coloured by the resource of the attributed function.

import { key } from "../bars.ts";
import type { Tip } from "../canvas.ts";
import type { Context } from "../context.ts";
import type { Flame } from "../data.ts";
import { type Child, el } from "../dom.ts";
import { percent } from "../figures.ts";
import { cutLeft, printable, shown } from "../names.ts";
import { colour, paintOf, pattern } from "../palette.ts";
import type { Theming } from "../theme.ts";
import { pasted } from "../verdict.ts";
import { type BoxFill, type Content, FlamePicture, type Shown, term } from "./picture.ts";
import { bottomUp, kindOf, matchedTime, type Tree, topDown } from "./tree.ts";

const MIN_SHARE = 0.05;

export class FlameView implements Content {
  readonly element: HTMLElement;
  readonly label = "Flame graph";
  readonly names: readonly string[];
  /** The kinds of time, then `mixed`. */
  readonly #kinds: readonly string[];
  readonly #picture: FlamePicture;
  #operator: number | null = null;

  constructor(
    readonly context: Context,
    readonly flame: Flame,
    theming: Theming,
    tip: Tip,
  ) {
    this.names = flame.frames.map((each) => shown(each));
    this.#kinds = [...flame.kinds, "mixed"];
    this.#picture = new FlamePicture(this, theming, tip);
    this.element = el(
      "section",
      { id: "flame", "aria-labelledby": "flame-title" },
      el(
        "div",
        { class: "section-head" },
        el("h2", { id: "flame-title" }, "Flame graph"),
        this.#picture.tools(this.#operators()),
      ),
      this.#picture.canvas,
      el(
        "div",
        { class: "under" },
        key(this.#kinds),
        flame.coarsened ? el("p", { class: "aside small" }, printable(flame.coarsened)) : null,
      ),
      this.#picture.detail,
    );
    context.store.onChoice(() => this.#picture.again());
  }

  #operators(): HTMLSelectElement | null {
    const { operators } = this.flame;
    if (operators.length < 2) return null;
    const made = el(
      "select",
      { "aria-label": "Operator" },
      el("option", { value: "" }, "all operators"),
      ...operators.map((name, place) => el("option", { value: place }, shown(name, 60))),
    );
    made.addEventListener("change", () => {
      this.#operator = made.value === "" ? null : Number(made.value);
      this.#picture.again();
    });
    return made;
  }

  tree(inverted: boolean): Tree {
    const filter = { stages: this.context.store.now.choice?.stages ?? null, operator: this.#operator };
    return (inverted ? bottomUp : topDown)(this.flame, filter);
  }

  fills(brush: CanvasRenderingContext2D, scale: number): BoxFill[] {
    const [onPaint, ink] = [colour("--on-paint"), colour("--ink")];
    return this.#kinds.map((name, place) => ({
      fill: pattern(brush, paintOf(name, place), scale),
      plate: colour(paintOf(name, place).variable),
      ink: name === "waiting" || name === "unknown" ? ink : onPaint,
    }));
  }

  fillOf(tree: Tree, node: number): number {
    return kindOf(tree, node, this.flame.mixedBelow);
  }

  prefix(): string {
    return "";
  }

  counted({ tree, layout }: Shown, matches: ReadonlySet<number>): string {
    const ms = matchedTime(tree, (frame) => matches.has(frame));
    return `${this.context.figures.text(ms)} (${percent(ms, layout.total_ms)})`;
  }

  lines({ tree, layout }: Shown, node: number): string[] {
    const { figures } = this.context;
    const frame = tree.frame[node]!;
    return [
      cutLeft(this.names[frame]!, 90),
      `${figures.text(tree.total[node]!)} (${percent(tree.total[node]!, layout.total_ms)}), self ${figures.text(tree.self[node]!)}`,
      this.#label(frame),
    ].filter(Boolean);
  }

  /** The label of a function in its index: `net 64 %, cpu 33 %`. */
  #label(frame: number): string {
    const label = this.flame.labels.get(frame);
    return label ? `${this.#shares(label.shares)} (${shown(label.index, 60)})` : "";
  }

  #shares(shares: readonly number[]): string {
    return shares
      .map((share, place) => ({ share, name: this.context.data.resources[place]?.name ?? "" }))
      .filter(({ share }) => share >= MIN_SHARE)
      .sort((a, b) => b.share - a.share)
      .map(({ share, name }) => `${name} ${percent(share, 1)}`)
      .join(", ");
  }

  /** Of a frame: its time, its label, the label's confidence and evidence. */
  detail({ tree, layout }: Shown, node: number): Child[] {
    const { figures, data } = this.context;
    if (node < 0) return [el("p", { class: "aside" }, `${figures.text(layout.total_ms)} of ${data.words.task} time`)];
    const frame = tree.frame[node]!;
    const label = this.flame.labels.get(frame);
    const why =
      label && this.flame.why.replace("{name}", () => this.names[frame]!).replace("{index}", () => label.index);
    const kinds = this.flame.kinds
      .map((name, kind) => ({ name, kind, ms: tree.byKind[node * tree.kinds + kind]! }))
      .filter(({ ms }) => ms > 0)
      .sort((a, b) => b.ms - a.ms)
      .map(({ name, ms }) => `${name} ${figures.text(ms)}`);
    return [
      el("p", { class: "frame-name" }, this.names[frame]!),
      el(
        "dl",
        {},
        term("time", `${figures.text(tree.total[node]!)} (${percent(tree.total[node]!, layout.total_ms)})`),
        term("self time", figures.text(tree.self[node]!)),
        term("by resource", kinds.join(", ")),
        term("label", this.#label(frame)),
        term("confidence", label?.confidence ? percent(label.confidence, 1) : ""),
        term("label from code alone", label && this.#shares(label.code)),
        term("label from documentation alone", label && this.#shares(label.documentation)),
      ),
      why ? pasted([why]) : null,
    ];
  }
}
