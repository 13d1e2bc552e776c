// The picture of a flame graph: boxes on a canvas, zoom, keys, search, and the detail of the chosen frame.

import { fitted, Surface, type Tip } from "../canvas.ts";
import { button, type Child, el, fill } from "../dom.ts";
import { colour } from "../palette.ts";
import type { Theming } from "../theme.ts";
import { search } from "./search.ts";
import { type Layout, laidOut, type Tree } from "./tree.ts";

const ROW = 19;
const MAX_LEVELS = 40;
const MIN_TEXT = 44;
const MIN_BOX = 0.6; // minimum width of a drawn box in CSS pixels

/** The tree for the current choice, and its layout. */
export interface Shown {
  readonly tree: Tree;
  readonly layout: Layout;
}

/** The fill of a box, the plain colour behind its text, and the colour of the text. */
export interface BoxFill {
  readonly fill: CanvasPattern | string;
  readonly plate: string;
  readonly ink: string;
}

/** The content of a flame graph. */
export interface Content {
  readonly label: string;
  /** The names of frames, as shown. */
  readonly names: readonly string[];
  /** The tree for the current choice. */
  tree(inverted: boolean): Tree;
  /** All fills, after each change of theme. */
  fills(brush: CanvasRenderingContext2D, scale: number): readonly BoxFill[];
  /** The position of a node's fill. */
  fillOf(tree: Tree, node: number): number;
  /** A short text before the name in a box; may be empty. */
  prefix(tree: Tree, node: number): string;
  /** The lines of a node's tooltip. */
  lines(shown: Shown, node: number): string[];
  /** The detail below the picture; of all frames for -1. */
  detail(shown: Shown, node: number): Child[];
  /** The time of the frames that match a search. */
  counted(shown: Shown, matches: ReadonlySet<number>): string;
}

export class FlamePicture {
  readonly canvas: HTMLCanvasElement;
  readonly detail = el("div", { class: "detail", "aria-live": "polite" });
  readonly #surface: Surface;
  readonly #found = el("span", { class: "found", role: "status" });
  #shown: Shown;
  #root = -1;
  #chosen = -1;
  #inverted = false;
  #upwards = false;
  #matches: ReadonlySet<number> = new Set();
  #fills: readonly BoxFill[] | null = null;

  constructor(
    readonly content: Content,
    theming: Theming,
    readonly tip: Tip,
  ) {
    this.#shown = this.#summed();
    this.#surface = new Surface(this.#high(), () => this.#paint(), {
      class: "flame-canvas",
      tabindex: 0,
      role: "application",
      "aria-label": `${content.label}: arrows move between frames, Enter zooms, Escape shows all`,
    });
    this.canvas = this.#surface.canvas;
    this.#listen();
    this.#showFrame(-1);
    theming.subscribe(() => {
      this.#fills = null;
      this.#surface.redraw();
    });
  }

  /** The search, the given controls, and those of every flame graph. */
  tools(...own: Child[]): HTMLElement {
    const field = el("input", {
      type: "search",
      placeholder: "Search: regular expression",
      "aria-label": "Search frames by regular expression",
      spellcheck: "false",
      autocomplete: "off",
    });
    let waiting: ReturnType<typeof setTimeout> | undefined;
    field.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.#search(field.value), 120);
    });
    return el(
      "div",
      { class: "tools" },
      el("span", { class: "search" }, field, this.#found),
      ...own,
      toggled("Bottom-up", "Functions by self time, with their callers below", (on) => {
        this.#inverted = on;
        this.again();
      }),
      toggled("Upwards", "Draw the root at the bottom", (on) => {
        this.#upwards = on;
        this.#surface.redraw();
      }),
      button("All frames", () => this.#zoom(-1), { title: "Leave the zoom" }),
    );
  }

  #summed(): Shown {
    const tree = this.content.tree(this.#inverted);
    return { tree, layout: laidOut(tree) };
  }

  #high(): number {
    return ROW * Math.max(3, Math.min(MAX_LEVELS, this.#shown.layout.levels.length)) + 1;
  }

  /** Shows other data after a change of the choice or of the direction. */
  again(): void {
    this.#shown = this.#summed();
    this.#root = -1;
    this.#chosen = -1;
    this.#surface.height = this.#high();
    this.#surface.fit();
    this.#count();
    this.#showFrame(-1);
  }

  #search(text: string): void {
    const { places, wrong } = search(this.content.names, text);
    this.#matches = places;
    this.#found.textContent = wrong;
    this.#found.classList.toggle("wrong", wrong !== "");
    if (!wrong) this.#count(text !== "");
    this.#surface.redraw();
  }

  #count(searched = this.#matches.size > 0): void {
    this.#found.textContent = searched ? this.content.counted(this.#shown, this.#matches) : "";
  }

  // Drawing ------------------------------------------------------------------------------------------------------------

  /** The visible interval, as shares of the whole width. */
  get #window(): readonly [number, number] {
    const { left, right } = this.#shown.layout;
    return this.#root < 0 ? [0, 1] : [left[this.#root]!, right[this.#root]!];
  }

  /** The first visible level: a zoomed frame is shown with two of its callers. */
  get #base(): number {
    return this.#root < 0 ? 0 : Math.max(0, this.#shown.layout.depth[this.#root]! - 2);
  }

  #y(depth: number): number {
    const row = depth - this.#base;
    return this.#upwards ? this.#surface.height - 1 - ROW * (row + 1) : ROW * row;
  }

  #paint(): void {
    const began = performance.now();
    const { context: brush, width, scale } = this.#surface;
    const { tree, layout } = this.#shown;
    this.#fills ??= this.content.fills(brush, scale);
    const [from, to] = this.#window;
    const span = width / (to - from || 1);
    const [ink, matched] = [colour("--ink"), colour("--match")];
    const chosenDepth = this.#root < 0 ? -1 : layout.depth[this.#root]!;
    brush.textAlign = "left";
    for (const nodes of layout.levels.slice(this.#base, this.#base + MAX_LEVELS)) {
      for (const node of nodes) {
        const left = Math.max(0, (layout.left[node]! - from) * span);
        const right = Math.min(width, (layout.right[node]! - from) * span);
        if (right - left < MIN_BOX) continue;
        const y = this.#y(layout.depth[node]!);
        const box = this.#fills[this.content.fillOf(tree, node)]!;
        const faint =
          (this.#matches.size > 0 && !this.#matches.has(tree.frame[node]!)) || layout.depth[node]! < chosenDepth;
        brush.globalAlpha = faint ? 0.35 : 1;
        brush.fillStyle = box.fill;
        brush.fillRect(left, y, Math.max(MIN_BOX, right - left - (right - left > 3 ? 1 : 0)), ROW - 1);
        if (right - left > 26) {
          const text = this.#boxText(brush, node, right - left - 9);
          if (text) {
            // A plain background under the text, because a texture makes it hard to read.
            brush.fillStyle = box.plate;
            brush.fillRect(left, y, Math.min(right - left - 1, brush.measureText(text).width + 9), ROW - 1);
            brush.fillStyle = box.ink;
            brush.fillText(text, left + 4, y + ROW / 2);
          }
        }
        if (this.#matches.has(tree.frame[node]!) && right - left > 2) {
          brush.fillStyle = matched;
          brush.fillRect(left, y + ROW - 4, right - left - 1, 3);
        }
        if (node === this.#chosen) {
          brush.strokeStyle = ink;
          brush.lineWidth = 2;
          brush.strokeRect(left + 1, y + 1, Math.max(1, right - left - 3), ROW - 3);
        }
      }
    }
    brush.globalAlpha = 1;
    performance.measure("flame frame", { start: began, end: performance.now() });
  }

  /** A name that fits: whole, without its package, or only its end; the prefix comes first. */
  #boxText(brush: CanvasRenderingContext2D, node: number, available: number): string {
    const { tree } = this.#shown;
    const name = this.content.names[tree.frame[node]!]!;
    const prefix = this.content.prefix(tree, node);
    const short = name.split(".").slice(-2).join(".");
    const texts = [name, short].map((each) => (prefix ? `${prefix} ${each}` : each));
    const fits = [...texts, prefix].find((each) => each && brush.measureText(each).width <= available);
    if (fits && fits !== prefix) return fits;
    const left = available - (prefix ? brush.measureText(`${prefix} `).width : 0);
    const cut = left > MIN_TEXT ? fitted(brush, short, left, true) : "";
    return cut && prefix ? `${prefix} ${cut}` : cut || (fits ?? "");
  }

  // Input --------------------------------------------------------------------------------------------------------------

  #listen(): void {
    const { canvas } = this;
    canvas.addEventListener("pointermove", (event) => {
      const node = this.#at(event.offsetX, event.offsetY);
      canvas.style.cursor = node < 0 ? "default" : "pointer";
      if (node < 0) this.tip.hide();
      else this.tip.show(event.clientX, event.clientY, this.content.lines(this.#shown, node));
    });
    canvas.addEventListener("pointerleave", () => this.tip.hide());
    canvas.addEventListener("click", (event) => {
      const node = this.#at(event.offsetX, event.offsetY);
      this.#showFrame(node);
      this.#zoom(node === this.#root ? this.#above(node) : node);
    });
    canvas.addEventListener("keydown", (event) => {
      const acts: Record<string, () => void> = {
        ArrowDown: () => this.#step(this.#upwards ? -1 : 1),
        ArrowUp: () => this.#step(this.#upwards ? 1 : -1),
        ArrowLeft: () => this.#sibling(-1),
        ArrowRight: () => this.#sibling(1),
        Enter: () => this.#zoom(this.#chosen),
        Escape: () => this.#zoom(-1),
      };
      const act = acts[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
  }

  #at(x: number, y: number): number {
    const { layout } = this.#shown;
    const depth = this.#upwards ? Math.floor((this.#surface.height - 1 - y) / ROW) : Math.floor(y / ROW);
    const [from, to] = this.#window;
    const share = from + (x / Math.max(1, this.#surface.width)) * (to - from);
    const level = layout.levels[depth + this.#base];
    if (!level) return -1;
    return level.find((node) => layout.left[node]! <= share && share < layout.right[node]!) ?? -1;
  }

  #zoom(node: number): void {
    this.#root = node;
    this.#surface.redraw();
  }

  /** The caller's node; -1 if it is the root. */
  #above(node: number): number {
    const above = this.#shown.tree.parent[node]!;
    return above > 0 ? above : -1;
  }

  /** Moves to the parent, or to the child with the most time. */
  #step(by: 1 | -1): void {
    const { tree, layout } = this.#shown;
    if (this.#chosen < 0) this.#showFrame(layout.levels[0]?.[0] ?? -1);
    else if (by < 0 && tree.parent[this.#chosen]! > 0) this.#showFrame(tree.parent[this.#chosen]!);
    else if (by > 0) {
      const below = layout.levels[layout.depth[this.#chosen]! + 1] ?? [];
      const child = below.find((node) => tree.parent[node] === this.#chosen);
      if (child !== undefined) this.#showFrame(child);
    }
  }

  #sibling(by: 1 | -1): void {
    const { layout } = this.#shown;
    const level = this.#chosen < 0 ? undefined : layout.levels[layout.depth[this.#chosen]!];
    const next = level?.[(level.indexOf(this.#chosen) ?? 0) + by];
    if (next !== undefined) this.#showFrame(next);
  }

  #showFrame(node: number): void {
    this.#chosen = node;
    fill(this.detail, ...this.content.detail(this.#shown, node));
    this.#surface?.redraw();
  }
}

/** A button that is on or off. */
export function toggled(label: string, title: string, act: (on: boolean) => void): HTMLButtonElement {
  const made = button(
    label,
    () => {
      const on = made.getAttribute("aria-pressed") !== "true";
      made.setAttribute("aria-pressed", String(on));
      act(on);
    },
    { "aria-pressed": "false", title },
  );
  return made;
}

/** A term and its text; null without a text. */
export function term(name: string, text: string | undefined): HTMLElement | null {
  return text ? el("div", {}, el("dt", {}, name), el("dd", {}, text)) : null;
}
