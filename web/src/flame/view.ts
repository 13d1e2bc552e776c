// The flame graph of sampled stacks, coloured by the resource of the attributed function.

import { key } from "../bars.ts";
import { fitted, Surface, type Tip } from "../canvas.ts";
import type { Context } from "../context.ts";
import type { Flame } from "../data.ts";
import { button, el, fill } from "../dom.ts";
import { percent } from "../figures.ts";
import { cutLeft, printable, shown } from "../names.ts";
import { colour, paintOf, pattern } from "../palette.ts";
import type { Theming } from "../theme.ts";
import { pasted } from "../verdict.ts";
import { search } from "./search.ts";
import { bottomUp, kindOf, type Layout, laidOut, matchedTime, type Tree, topDown } from "./tree.ts";

const ROW = 19;
const MAX_LEVELS = 40;
const MIN_SHARE = 0.05;
const MIN_TEXT = 44;
const MIN_BOX = 0.6; // minimum width of a drawn box in CSS pixels

/** The tree for the current choice, and its layout. */
interface Shown {
  readonly tree: Tree;
  readonly layout: Layout;
}

export class FlameView {
  readonly element: HTMLElement;
  readonly #flame: Flame;
  readonly #surface: Surface;
  readonly #detail = el("div", { class: "detail", "aria-live": "polite" });
  readonly #found = el("span", { class: "found", role: "status" });
  readonly #names: readonly string[];
  /** The kinds of time, then `mixed`. */
  readonly #kinds: readonly string[];
  #operator: number | null = null;
  #shown: Shown;
  #root = -1;
  #chosen = -1;
  #inverted = false;
  #upwards = false;
  #matches: ReadonlySet<number> = new Set();
  #paints: (CanvasPattern | string)[] | null = null;

  constructor(
    readonly context: Context,
    flame: Flame,
    theming: Theming,
    readonly tip: Tip,
  ) {
    const { store } = context;
    this.#flame = flame;
    this.#names = flame.frames.map((each) => shown(each));
    this.#kinds = [...flame.kinds, "mixed"];
    this.#shown = this.#summed();
    this.#surface = new Surface(this.#high(), () => this.#paint(), {
      class: "flame-canvas",
      tabindex: 0,
      role: "application",
      "aria-label": "Flame graph: arrows move between frames, Enter zooms, Escape shows all",
    });
    this.element = el(
      "section",
      { id: "flame", "aria-labelledby": "flame-title" },
      el("div", { class: "section-head" }, el("h2", { id: "flame-title" }, "Flame graph"), this.#tools()),
      this.#surface.canvas,
      el(
        "div",
        { class: "under" },
        key(this.#kinds),
        flame.coarsened ? el("p", { class: "aside small" }, printable(flame.coarsened)) : null,
      ),
      this.#detail,
    );
    this.#listen();
    this.#showFrame(-1);
    theming.subscribe(() => {
      this.#paints = null;
      this.#surface.redraw();
    });
    store.onChoice(() => this.#again());
  }

  #tools(): HTMLElement {
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
    const toggled = (label: string, title: string, act: (on: boolean) => void): HTMLButtonElement => {
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
    };
    return el(
      "div",
      { class: "tools" },
      el("span", { class: "search" }, field, this.#found),
      this.#operators(),
      toggled("Bottom-up", "Functions by self time, with their callers below", (on) => {
        this.#inverted = on;
        this.#again();
      }),
      toggled("Upwards", "Draw the root at the bottom", (on) => {
        this.#upwards = on;
        this.#surface.redraw();
      }),
      button("All frames", () => this.#zoom(-1), { title: "Leave the zoom" }),
    );
  }

  #operators(): HTMLSelectElement | null {
    const { operators } = this.#flame;
    if (operators.length < 2) return null;
    const made = el(
      "select",
      { "aria-label": "Operator" },
      el("option", { value: "" }, "all operators"),
      ...operators.map((name, place) => el("option", { value: place }, shown(name, 60))),
    );
    made.addEventListener("change", () => {
      this.#operator = made.value === "" ? null : Number(made.value);
      this.#again();
    });
    return made;
  }

  #summed(): Shown {
    const filter = { stages: this.context.store.now.choice?.stages ?? null, operator: this.#operator };
    const tree = (this.#inverted ? bottomUp : topDown)(this.#flame, filter);
    return { tree, layout: laidOut(tree) };
  }

  #high(): number {
    return ROW * Math.max(3, Math.min(MAX_LEVELS, this.#shown.layout.levels.length)) + 1;
  }

  /** Shows other data after a change of stage, operator or direction. */
  #again(): void {
    this.#shown = this.#summed();
    this.#root = -1;
    this.#chosen = -1;
    this.#surface.height = this.#high();
    this.#surface.fit();
    this.#count();
    this.#showFrame(-1);
  }

  #search(text: string): void {
    const { places, wrong } = search(this.#names, text);
    this.#matches = places;
    this.#found.textContent = wrong;
    this.#found.classList.toggle("wrong", wrong !== "");
    if (!wrong) this.#count(text !== "");
    this.#surface.redraw();
  }

  #count(searched = this.#matches.size > 0): void {
    const { tree, layout } = this.#shown;
    const ms = searched ? matchedTime(tree, (frame) => this.#matches.has(frame)) : 0;
    this.#found.textContent = searched ? `${this.context.figures.text(ms)} (${percent(ms, layout.total_ms)})` : "";
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
    const kinds = this.#kinds;
    this.#paints ??= kinds.map((name, place) => pattern(brush, paintOf(name, place), scale));
    const [from, to] = this.#window;
    const span = width / (to - from || 1);
    const [onPaint, ink, matched] = [colour("--on-paint"), colour("--ink"), colour("--match")];
    const plates = kinds.map((name, place) => colour(paintOf(name, place).variable));
    const chosenDepth = this.#root < 0 ? -1 : layout.depth[this.#root]!;
    brush.textAlign = "left";
    for (const nodes of layout.levels.slice(this.#base, this.#base + MAX_LEVELS)) {
      for (const node of nodes) {
        const left = Math.max(0, (layout.left[node]! - from) * span);
        const right = Math.min(width, (layout.right[node]! - from) * span);
        if (right - left < MIN_BOX) continue;
        const y = this.#y(layout.depth[node]!);
        const paint = kindOf(tree, node, this.#flame.mixedBelow);
        const faint =
          (this.#matches.size > 0 && !this.#matches.has(tree.frame[node]!)) || layout.depth[node]! < chosenDepth;
        brush.globalAlpha = faint ? 0.35 : 1;
        brush.fillStyle = this.#paints[paint]!;
        brush.fillRect(left, y, Math.max(MIN_BOX, right - left - (right - left > 3 ? 1 : 0)), ROW - 1);
        if (right - left > 26) {
          const text = this.#boxText(brush, this.#names[tree.frame[node]!]!, right - left - 9);
          if (text) {
            const grey = kinds[paint] === "waiting" || kinds[paint] === "unknown";
            // A plain background under the text, because a texture makes it hard to read.
            brush.fillStyle = plates[paint]!;
            brush.fillRect(left, y, Math.min(right - left - 1, brush.measureText(text).width + 9), ROW - 1);
            brush.fillStyle = grey ? ink : onPaint;
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

  /** A name that fits: whole, without its package, or only its end. */
  #boxText(brush: CanvasRenderingContext2D, name: string, available: number): string {
    const short = name.split(".").slice(-2).join(".");
    const fits = [name, short].find((each) => brush.measureText(each).width <= available);
    return fits ?? (available > MIN_TEXT ? fitted(brush, short, available, true) : "");
  }

  // Input --------------------------------------------------------------------------------------------------------------

  #listen(): void {
    const { canvas } = this.#surface;
    canvas.addEventListener("pointermove", (event) => {
      const node = this.#at(event.offsetX, event.offsetY);
      canvas.style.cursor = node < 0 ? "default" : "pointer";
      if (node < 0) this.tip.hide();
      else this.tip.show(event.clientX, event.clientY, this.#lines(node));
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

  #lines(node: number): string[] {
    const { figures } = this.context;
    const { tree, layout } = this.#shown;
    const frame = tree.frame[node]!;
    return [
      cutLeft(this.#names[frame]!, 90),
      `${figures.text(tree.total[node]!)} (${percent(tree.total[node]!, layout.total_ms)}), self ${figures.text(tree.self[node]!)}`,
      this.#label(frame),
    ].filter(Boolean);
  }

  /** The label of a function in its index: `net 64 %, cpu 33 %`. */
  #label(frame: number): string {
    const label = this.#flame.labels.get(frame);
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

  /** Shows a frame below the picture: its time, its label, the label's confidence and evidence. */
  #showFrame(node: number): void {
    this.#chosen = node;
    const { figures } = this.context;
    const { tree, layout } = this.#shown;
    if (node < 0) {
      fill(
        this.#detail,
        el("p", { class: "aside" }, `${figures.text(layout.total_ms)} of ${this.context.data.words.task} time`),
      );
    } else {
      const frame = tree.frame[node]!;
      const label = this.#flame.labels.get(frame);
      const why =
        label && this.#flame.why.replace("{name}", () => this.#names[frame]!).replace("{index}", () => label.index);
      const kinds = this.#flame.kinds
        .map((name, kind) => ({ name, kind, ms: tree.byKind[node * tree.kinds + kind]! }))
        .filter(({ ms }) => ms > 0)
        .sort((a, b) => b.ms - a.ms)
        .map(({ name, ms }) => `${name} ${figures.text(ms)}`);
      const row = (term: string, text: string | undefined): HTMLElement | null =>
        text ? el("div", {}, el("dt", {}, term), el("dd", {}, text)) : null;
      fill(
        this.#detail,
        el("p", { class: "frame-name" }, this.#names[frame]!),
        el(
          "dl",
          {},
          row("time", `${figures.text(tree.total[node]!)} (${percent(tree.total[node]!, layout.total_ms)})`),
          row("self time", figures.text(tree.self[node]!)),
          row("by resource", kinds.join(", ")),
          row("label", this.#label(frame)),
          row("confidence", label?.confidence ? percent(label.confidence, 1) : ""),
          row("label from code alone", label && this.#shares(label.code)),
          row("label from documentation alone", label && this.#shares(label.documentation)),
        ),
        why ? pasted([why]) : null,
      );
    }
    this.#surface?.redraw();
  }
}
