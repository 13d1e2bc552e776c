// The curve of one setting: runtime by amount, with the 90 % range, the knee and the chosen point.

import type { Setting } from "../data.ts";
import { el, svg } from "../dom.ts";

const SIDE = 100; // the drawing is scaled to its place; lines keep their width

/** Half a slider's thumb in CSS pixels: curve, ticks and thumb share their ends. */
export const INSET = "var(--inset)";

export class Curve {
  readonly element: HTMLElement;
  readonly #dot = el("i", { class: "dot", "aria-hidden": "true" });
  readonly #most: number;

  constructor(
    readonly setting: Setting,
    readonly place: (ratio: number) => number,
    most_ms: number,
    base_ms: number,
  ) {
    this.#most = most_ms;
    const known = setting.points.filter((each) => each.predicted_ms !== null);
    const x = (ratio: number): string => (SIDE * place(ratio)).toFixed(2);
    const y = (ms: number): string => (SIDE * (1 - Math.min(1, ms / most_ms))).toFixed(2);
    const band = known.filter((each) => each.low_ms !== null && each.high_ms !== null);
    const picture = svg(
      "svg",
      { viewBox: `0 0 ${SIDE} ${SIDE}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("line", { class: "recorded", x1: 0, x2: SIDE, y1: y(base_ms), y2: y(base_ms) }),
      band.length > 1 &&
        svg("polygon", {
          class: "band",
          points: [
            ...band.map((each) => `${x(each.ratio)},${y(each.high_ms ?? 0)}`),
            ...band.toReversed().map((each) => `${x(each.ratio)},${y(each.low_ms ?? 0)}`),
          ].join(" "),
        }),
      svg("polyline", { class: "line", points: known.map((e) => `${x(e.ratio)},${y(e.predicted_ms ?? 0)}`).join(" ") }),
    );
    const marks = known.map((each) => this.#mark(each.ratio, each.predicted_ms ?? 0, "grid"));
    const knee = setting.points.find((each) => each.ratio === setting.knee);
    if (knee && knee.predicted_ms !== null) {
      const mark = this.#mark(knee.ratio, knee.predicted_ms, "knee");
      mark.title = setting.knee_text;
      marks.push(mark);
    }
    this.element = el("div", { class: "curve" }, picture, ...marks, this.#dot);
  }

  #mark(ratio: number, ms: number, kind: string): HTMLElement {
    const made = el("i", { class: kind, "aria-hidden": "true" });
    this.#put(made, ratio, ms);
    return made;
  }

  #put(mark: HTMLElement, ratio: number, ms: number): void {
    mark.style.left = `calc(${INSET} + (100% - 2 * ${INSET}) * ${this.place(ratio).toFixed(4)})`;
    mark.style.top = `${(100 * (1 - Math.min(1, ms / this.#most))).toFixed(2)}%`;
  }

  /** Moves the dot to the prediction for this setting alone; hides it if there is none. */
  show(ratio: number, ms: number | null): void {
    this.#dot.hidden = ms === null;
    if (ms !== null) this.#put(this.#dot, ratio, ms);
  }
}
