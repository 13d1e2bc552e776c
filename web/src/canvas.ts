// A canvas that follows the size of its place and the resolution of the screen, and draws at most once per frame.

import { el } from "./dom.ts";

export const FONT = '11px Inter, ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

export class Surface {
  readonly canvas: HTMLCanvasElement;
  readonly context: CanvasRenderingContext2D;
  /** CSS pixels. */
  width = 0;
  /** Device pixels per CSS pixel. */
  scale = 1;
  #waiting = false;

  constructor(
    public height: number,
    readonly paint: () => void,
    attributes: Record<string, string | number> = {},
  ) {
    this.canvas = el("canvas", attributes);
    const context = this.canvas.getContext("2d");
    if (!context) throw new Error("this browser has no canvas");
    this.context = context;
    new ResizeObserver(() => this.fit()).observe(this.canvas);
  }

  /** Takes the size of its place; it calls this itself when that changes. */
  fit(): void {
    const width = Math.floor(this.canvas.clientWidth);
    if (width === 0) return;
    this.scale = Math.min(3, Math.max(1, globalThis.devicePixelRatio || 1));
    this.width = width;
    this.canvas.width = Math.round(width * this.scale);
    this.canvas.height = Math.round(this.height * this.scale);
    this.canvas.style.height = `${this.height}px`;
    this.now();
  }

  /** Draws in the next frame. */
  redraw(): void {
    if (this.#waiting) return;
    this.#waiting = true;
    requestAnimationFrame(() => {
      this.#waiting = false;
      this.now();
    });
  }

  /** Draws at once. */
  now(): void {
    if (this.width === 0) return;
    this.context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    this.context.clearRect(0, 0, this.width, this.height);
    this.context.font = FONT;
    this.context.textBaseline = "middle";
    this.paint();
  }
}

/** The text, cut with `…` if it does not fit; empty if the width is too small for any text. */
export function fitted(context: CanvasRenderingContext2D, text: string, width: number, fromLeft = false): string {
  if (width < 14) return "";
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, Math.min(text.length, Math.ceil(width / 3))];
  const cut = (count: number): string =>
    fromLeft ? `…${text.slice(text.length - count)}` : `${text.slice(0, count)}…`;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(cut(middle)).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? cut(low) : "";
}

/** A tooltip next to the pointer, one element per line. */
export class Tip {
  readonly element = el("div", { class: "tip", role: "status", hidden: true });

  show(x: number, y: number, lines: readonly string[]): void {
    this.element.replaceChildren(...lines.map((line, index) => el(index ? "span" : "strong", {}, line)));
    this.element.hidden = false;
    const { offsetWidth, offsetHeight } = this.element;
    const left = Math.min(x + 14, document.documentElement.clientWidth - offsetWidth - 8);
    const top = y + 18 + offsetHeight > document.documentElement.clientHeight ? y - offsetHeight - 12 : y + 18;
    this.element.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(8, top)}px)`;
  }

  hide(): void {
    this.element.hidden = true;
  }
}
