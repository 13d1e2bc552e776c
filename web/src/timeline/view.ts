// The timeline: one row per lane, the driver and the critical path above them; zoom, pan, brush.

import { ticks } from "d3-array";
import { key, partsText } from "../bars.ts";
import { fitted, Surface, type Tip } from "../canvas.ts";
import { OTHER, partNames, type TimelineContext } from "../context.ts";
import type { Parts } from "../data.ts";
import { button, el } from "../dom.ts";
import { Figures, fixed, grouped } from "../figures.ts";
import { cutLeft, printable, shown } from "../names.ts";
import { colour, inkOn, type Paint, paintOf, pattern } from "../palette.ts";
import { ofStage } from "../store.ts";
import type { Theming } from "../theme.ts";
import { occupancy, type Rows, rowCount, rowsOf, type Through, taskAt, tasksOnPath, workerOf } from "./model.ts";
import { draw, type Fill, type Look } from "./raster.ts";

const AXIS = 22;
const STRIP = 14;
const PATH = 20;
const GAP = 6;
const TOP = AXIS + STRIP + PATH + GAP;
const MAX_HEIGHT = 420;
const MIN_MS = 0.5;
const MAX_DETAILED = 25_000;
const OVERVIEW = 44;
const FADED = 0.16;
const WIDE = 118; // space for names on the left; smaller on a narrow screen

/** The colours of tasks and of segments of the path; by default those of the resource with most of their time. */
export interface Colouring {
  readonly paints: readonly Paint[];
  /** The position of the paint of a node of the DAG, -1 for none, with most of its time on a resource. */
  of(stage: number, resource: number): number;
}

/** How one of several timelines of a page differs. */
export interface TimelineLook {
  readonly id: string;
  readonly title: string;
  readonly heading: "h2" | "h3";
  /** Tallest picture of the rows, CSS pixels. */
  readonly height: number;
  readonly colouring: () => Colouring;
  /** Whether it has its own buttons, and a legend of the resources. */
  readonly alone: boolean;
}

export class TimelineView {
  readonly element: HTMLElement;
  readonly #rows: Rows;
  readonly #surface: Surface;
  readonly #overview: Surface;
  readonly #tip: Tip;
  readonly #names: readonly string[];
  readonly #through: readonly Through[];
  readonly #colouringNow: () => Colouring;
  #colouring: Colouring;
  /** The rows with the position of each task's paint in place of its resource. */
  #coloured: Rows;
  readonly #buffer = document.createElement("canvas");
  #image: ImageData | null = null;
  #pixels = new Uint32Array(0);
  #look: Look | null = null;
  #busy: Float64Array | null = null;

  constructor(
    readonly context: TimelineContext,
    theming: Theming,
    tip: Tip,
    look: Partial<TimelineLook> = {},
  ) {
    const { timeline, words } = context.data;
    this.#tip = tip;
    const { id = "timeline", title = "Timeline", heading = "h2", alone = true } = look;
    this.#names = partNames(context);
    this.#colouringNow = look.colouring ?? (() => byResource(this.#names));
    this.#colouring = this.#colouringNow();
    this.#rows = rowsOf(timeline);
    this.#coloured = coloured(this.#rows, this.#colouring);
    this.#through = tasksOnPath(this.#rows, timeline.path);
    const rows = Math.max(1, rowCount(this.#rows));
    const height =
      TOP + Math.min(look.height ?? MAX_HEIGHT, Math.max(60, rows * (rows <= 12 ? 24 : rows <= 40 ? 12 : 4)));
    this.#surface = new Surface(height, () => this.#paint(), {
      class: "timeline-canvas",
      tabindex: 0,
      role: "application",
      "aria-label": `${title} of ${grouped(this.#rows.start.length)} ${words.tasks}: arrows move, plus and minus zoom, Home shows all`,
    });
    this.#overview = new Surface(OVERVIEW, () => this.#paintOverview(), {
      class: "overview-canvas",
      "aria-hidden": "true",
    });
    this.element = el(
      "section",
      { id, class: alone ? "" : "part", "aria-labelledby": `${id}-title` },
      el(
        "div",
        { class: "section-head" },
        el(heading, { id: `${id}-title` }, title),
        alone ? this.tools("Whole run") : null,
      ),
      el("div", { class: "timeline" }, this.#surface.canvas, this.#overview.canvas),
      el(
        "div",
        { class: "under" },
        alone ? key(partNames(context)) : null,
        timeline.coarsened ? el("p", { class: "aside small" }, printable(timeline.coarsened)) : null,
      ),
    );
    this.#listen();
    theming.subscribe(() => {
      this.#look = null;
      this.#surface.redraw();
      this.#overview.redraw();
    });
    context.store.subscribe(() => {
      this.#surface.redraw();
      this.#overview.redraw();
    });
  }

  /** Buttons that zoom, and one that shows the whole run. */
  tools(whole: string): HTMLElement {
    return el(
      "div",
      { class: "tools" },
      button("−", () => this.#zoom(2), { "aria-label": "Zoom out" }),
      button("+", () => this.#zoom(0.5), { "aria-label": "Zoom in" }),
      button(whole, () => this.#set(...this.context.store.whole)),
    );
  }

  /** Draws with the colouring that applies now. */
  recolour(): void {
    this.#colouring = this.#colouringNow();
    this.#coloured = coloured(this.#rows, this.#colouring);
    this.#look = null;
    this.#surface.redraw();
  }

  // Geometry -----------------------------------------------------------------------------------------------------------

  get #gutter(): number {
    return this.#surface.width < 560 ? 58 : WIDE;
  }

  get #span(): number {
    return this.#surface.width - this.#gutter;
  }

  #x(ms: number): number {
    const [from, to] = this.context.store.now.window;
    return this.#gutter + ((ms - from) / (to - from)) * this.#span;
  }

  #time(x: number): number {
    const [from, to] = this.context.store.now.window;
    return from + ((x - this.#gutter) / this.#span) * (to - from);
  }

  #set(from: number, to: number): void {
    const [first, last] = this.context.store.whole;
    const length = Math.min(last - first, Math.max(MIN_MS, to - from));
    const start = Math.min(last - length, Math.max(first, from));
    this.context.store.set({ window: [start, start + length] });
  }

  #zoom(factor: number, around?: number): void {
    const [from, to] = this.context.store.now.window;
    const still = around ?? (from + to) / 2;
    this.#set(still - (still - from) * factor, still + (to - still) * factor);
  }

  #pan(share: number): void {
    const [from, to] = this.context.store.now.window;
    this.#set(from + share * (to - from), to + share * (to - from));
  }

  // Drawing ------------------------------------------------------------------------------------------------------------

  #paint(): void {
    const began = performance.now();
    const { context: brush, width, height } = this.#surface;
    this.#paintRows(brush, height);
    this.#paintAxis(brush, width, height);
    this.#paintLabels(brush, height);
    this.#paintDriver(brush);
    this.#paintPath(brush, height);
    performance.measure("timeline frame", { start: began, end: performance.now() });
  }

  /** Drawn pixels per CSS pixel: fewer if a frame with so many tasks would take too long. */
  get #detail(): number {
    return this.#rows.start.length > MAX_DETAILED ? 1 : this.#surface.scale;
  }

  #paintRows(brush: CanvasRenderingContext2D, height: number): void {
    const scale = this.#detail;
    const [wide, high] = [Math.round(this.#span * scale), Math.round((height - TOP) * scale)];
    if (wide <= 0) return;
    if (this.#image?.width !== wide || this.#image.height !== high) {
      this.#image = new ImageData(wide, high);
      this.#pixels = new Uint32Array(this.#image.data.buffer);
      this.#buffer.width = wide;
      this.#buffer.height = high;
      this.#look = null;
    }
    this.#look ??= this.#looks(wide);
    const [from_ms, to_ms] = this.context.store.now.window;
    const view = { from_ms, to_ms, width: wide, height: high, chosen: this.#mask() };
    draw(this.#coloured, view, this.#look, this.#pixels);
    this.#buffer.getContext("2d")?.putImageData(this.#image, 0, 0);
    brush.fillStyle = colour("--sunken");
    brush.fillRect(this.#gutter, TOP, this.#span, height - TOP);
    brush.imageSmoothingEnabled = false;
    brush.drawImage(this.#buffer, this.#gutter, TOP, this.#span, height - TOP);
  }

  /** For each node whether it is chosen; null without a choice. */
  #mask(): Uint8Array | null {
    const { data, store } = this.context;
    const { choice } = store.now;
    return choice && Uint8Array.from(data.dag.nodes, (_, node) => Number(choice.stages.has(node)));
  }

  #paintAxis(brush: CanvasRenderingContext2D, width: number, height: number): void {
    const [from, to] = this.context.store.now.window;
    const { ms, name } = this.context.data.timeline.figure;
    const at = ticks(from / ms, to / ms, Math.max(2, Math.floor(this.#span / 90)));
    const step = (at[1] ?? 1) - (at[0] ?? 0);
    const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
    brush.fillStyle = colour("--muted");
    brush.strokeStyle = colour("--grid");
    brush.textAlign = "center";
    for (const tick of at) {
      const x = Math.round(this.#x(tick * ms)) + 0.5;
      brush.beginPath();
      brush.moveTo(x, AXIS - 4);
      brush.lineTo(x, height);
      brush.stroke();
      const text = fixed(tick, decimals);
      const half = brush.measureText(text).width / 2;
      if (x - half > this.#gutter - 8 && x + half < width) brush.fillText(text, x, AXIS / 2 - 2);
    }
    brush.textAlign = "right";
    brush.fillText(`[${name}]`, this.#gutter - 12, AXIS / 2 - 2);
  }

  #paintLabels(brush: CanvasRenderingContext2D, height: number): void {
    const { timeline, words } = this.context.data;
    const available = this.#gutter - 14;
    brush.fillStyle = colour("--muted");
    brush.textAlign = "right";
    brush.fillText(fitted(brush, words.driver, available), this.#gutter - 8, AXIS + STRIP / 2);
    if (timeline.path.length)
      brush.fillText(this.#gutter < WIDE ? "path" : "critical path", this.#gutter - 8, AXIS + STRIP + PATH / 2 + 2);
    const rows = Math.max(1, rowCount(this.#rows));
    let last = Number.NEGATIVE_INFINITY;
    timeline.workers.forEach((worker, place) => {
      const middle = (this.#rows.ofWorker[place]! + this.#rows.ofWorker[place + 1]!) / 2;
      const y = TOP + (middle / rows) * (height - TOP);
      const top = TOP + (this.#rows.ofWorker[place]! / rows) * (height - TOP);
      if (place && (height - TOP) / timeline.workers.length > 10) {
        brush.fillStyle = colour("--line");
        brush.fillRect(0, Math.round(top) - 1, this.#surface.width, 1);
        brush.fillStyle = colour("--muted");
      }
      if (y - last < 13) return; // labels do not overlap; rows without one are named by the pointer
      last = y;
      brush.fillText(fitted(brush, cutLeft(shown(worker.name, 200), 40), available, true), this.#gutter - 8, y);
    });
  }

  #paintDriver(brush: CanvasRenderingContext2D): void {
    const { height } = this.#surface;
    brush.fillStyle = colour("--shade");
    for (const each of this.context.data.timeline.pauses) {
      const [left, right] = [Math.max(this.#gutter, this.#x(each.start_ms)), this.#x(each.end_ms)];
      if (right > left) brush.fillRect(left, AXIS, right - left, height - AXIS);
    }
    brush.fillStyle = colour("--driver");
    for (const each of this.context.data.timeline.driver) {
      const [left, right] = [Math.max(this.#gutter, this.#x(each.start_ms)), this.#x(each.end_ms)];
      if (right > this.#gutter) brush.fillRect(left, AXIS + 2, Math.max(1, right - left), STRIP - 5);
    }
  }

  /** The critical path as a strip, and as a line through its tasks. */
  #paintPath(brush: CanvasRenderingContext2D, height: number): void {
    const { data, store } = this.context;
    const inks = [colour("--ink"), colour("--surface")] as const;
    brush.save();
    brush.beginPath();
    brush.rect(this.#gutter, 0, this.#span, height);
    brush.clip();
    brush.textAlign = "left";
    for (const step of data.timeline.path) {
      const [left, right] = [this.#x(step.start_ms), this.#x(step.end_ms)];
      if (right < this.#gutter || left > this.#surface.width) continue;
      const paint = this.#colouring.paints[this.#colouring.of(step.stage, dominant(step.parts, this.#names))]!;
      const plate = colour(paint.variable);
      brush.globalAlpha = store.has(step.stage) ? 1 : FADED * 2;
      brush.fillStyle = plate;
      brush.fillRect(left, AXIS + STRIP, Math.max(1, right - left - 1), PATH - 4);
      brush.fillStyle = paint.variable === "--other" ? inks[0] : inkOn(plate);
      const from = Math.max(left, this.#gutter);
      const available = right - from - 8;
      const label = [shown(step.id, 60), step.stage < 0 ? "" : shown(step.id, 60).replace(/^.*:/, "")].find(
        (text) => brush.measureText(text).width <= available,
      );
      if (label) brush.fillText(label, from + 4, AXIS + STRIP + PATH / 2 - 1.5);
    }
    brush.globalAlpha = 1;
    this.#paintThrough(brush, height, inks);
    brush.restore();
  }

  /** A line through the tasks of the critical path: thick along a task, thin from one to the next. */
  #paintThrough(brush: CanvasRenderingContext2D, height: number, [ink, halo]: readonly [string, string]): void {
    const rows = Math.max(1, rowCount(this.#rows));
    const along = new Path2D();
    const between = new Path2D();
    let last: readonly [number, number] | null = null;
    for (const { row, task } of this.#through) {
      const y = TOP + ((row + 0.5) / rows) * (height - TOP);
      const [left, right] = [this.#x(this.#rows.start[task]!), this.#x(this.#rows.end[task]!)];
      if (last) {
        between.moveTo(...last);
        between.lineTo(left, y);
      }
      along.moveTo(left, y);
      along.lineTo(right, y);
      last = [right, y];
    }
    const stroke = (path: Path2D, colours: string, wide: number): void => {
      brush.strokeStyle = colours;
      brush.lineWidth = wide;
      brush.stroke(path);
    };
    stroke(between, halo, 3);
    stroke(between, ink, 0.8);
    stroke(along, halo, 5);
    stroke(along, ink, 2.4);
  }

  #paintOverview(): void {
    const { context: brush, width } = this.#overview;
    const gutter = this.#gutter;
    const span = width - gutter;
    const [from, to] = this.context.store.whole;
    if (this.#busy?.length !== Math.floor(span / 2))
      this.#busy = occupancy(this.#rows, from, to, Math.max(1, Math.floor(span / 2)));
    const most = this.#busy.reduce((a, b) => Math.max(a, b), 1);
    brush.fillStyle = colour("--sunken");
    brush.fillRect(gutter, 8, span, OVERVIEW - 8);
    brush.fillStyle = colour("--faint");
    this.#busy.forEach((busy, bin) => {
      const high = (busy / most) * (OVERVIEW - 12);
      brush.fillRect(gutter + 2 * bin, OVERVIEW - high, 2, high);
    });
    const [left, right] = this.context.store.now.window.map((ms) => gutter + ((ms - from) / (to - from)) * span) as [
      number,
      number,
    ];
    brush.fillStyle = colour("--shade");
    brush.fillRect(gutter, 8, left - gutter, OVERVIEW - 8);
    brush.fillRect(right, 8, width - right, OVERVIEW - 8);
    brush.strokeStyle = colour("--accent");
    brush.lineWidth = 1.5;
    brush.strokeRect(left + 0.75, 8.75, Math.max(2, right - left - 1.5), OVERVIEW - 9.5);
    brush.fillStyle = colour("--muted");
    brush.textAlign = "right";
    const label = gutter < WIDE ? "running" : `${this.context.data.words.tasks} running`;
    brush.fillText(fitted(brush, label, gutter - 14), gutter - 8, OVERVIEW / 2 + 4);
  }

  /** A fill for each resource, then a faded one for each; `wide` is the picture's width in device pixels. */
  #looks(wide: number): Look {
    const scale = this.#detail;
    const fill = (paint: Paint, alpha: number): Fill => {
      const side = paint.texture === "plain" || alpha < 1 ? 1 : Math.round(30 * scale);
      const tile = painted(side, (brush) => {
        brush.fillStyle = colour("--sunken");
        brush.fillRect(0, 0, side, side);
        brush.globalAlpha = alpha;
        const ink = side === 1 ? colour(paint.variable) : pattern(brush, paint, scale);
        if (typeof ink !== "string") ink.setTransform(new DOMMatrix());
        brush.fillStyle = ink;
        brush.fillRect(0, 0, side, side);
      });
      const plain = painted(1, (brush) => {
        brush.fillStyle = colour("--sunken");
        brush.fillRect(0, 0, 1, 1);
        brush.globalAlpha = alpha;
        brush.fillStyle = colour(paint.variable);
        brush.fillRect(0, 0, 1, 1);
      });
      const line = (y: number): Uint32Array =>
        Uint32Array.from({ length: wide }, (_, x) => tile[y * side + (x % side)]!);
      return { plain: plain[0]!, lines: side === 1 ? [] : Array.from({ length: side }, (_, y) => line(y)) };
    };
    const [failed] = painted(1, (brush) => {
      brush.fillStyle = colour("--bad");
      brush.fillRect(0, 0, 1, 1);
    });
    return {
      fills: [1, FADED].flatMap((alpha) => this.#colouring.paints.map((paint) => fill(paint, alpha))),
      failed: failed!,
      least: Math.round(5 * scale),
    };
  }

  // Input --------------------------------------------------------------------------------------------------------------

  #listen(): void {
    const { canvas } = this.#surface;
    const pointers = new Map<number, number>();
    let began: { x: number; window: readonly [number, number]; moved: boolean } | null = null;
    let spread = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, event.offsetX);
      began = { x: event.offsetX, window: this.context.store.now.window, moved: false };
      spread = apart(pointers);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!pointers.has(event.pointerId) || !began) {
        this.#hover(event);
        return;
      }
      pointers.set(event.pointerId, event.offsetX);
      if (pointers.size === 2) {
        const now = apart(pointers);
        if (now > 0 && spread > 0) this.#zoom(spread / now, this.#time(middle(pointers)));
        spread = now;
        began.moved = true;
        return;
      }
      const by = began.x - event.offsetX;
      if (Math.abs(by) > 3) began.moved = true;
      if (!began.moved) return;
      this.#tip.hide();
      const [from, to] = began.window;
      const ms = (by / this.#span) * (to - from);
      this.#set(from + ms, to + ms);
    });
    const lift = (event: PointerEvent): void => {
      pointers.delete(event.pointerId);
      if (began && !began.moved && event.type === "pointerup") this.#choose(event.offsetX, event.offsetY);
      if (pointers.size === 0) began = null;
    };
    canvas.addEventListener("pointerup", lift);
    canvas.addEventListener("pointercancel", lift);
    canvas.addEventListener("pointerleave", () => this.#tip.hide());
    canvas.addEventListener("dblclick", (event) => this.#zoom(0.4, this.#time(event.offsetX)));
    canvas.addEventListener(
      "wheel",
      (event) => {
        // A wheel without a key scrolls the page.
        if (event.ctrlKey || event.metaKey) {
          event.preventDefault();
          this.#zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 150), this.#time(event.offsetX));
        } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
          event.preventDefault();
          this.#pan((event.deltaX || event.deltaY) / this.#span);
        }
      },
      { passive: false },
    );
    canvas.addEventListener("keydown", (event) => {
      const acts: Record<string, () => void> = {
        ArrowLeft: () => this.#pan(-0.1),
        ArrowRight: () => this.#pan(0.1),
        "+": () => this.#zoom(0.7),
        "=": () => this.#zoom(0.7),
        "-": () => this.#zoom(1 / 0.7),
        Home: () => this.#set(...this.context.store.whole),
        Escape: () => this.context.store.set({ choice: null }),
      };
      const act = acts[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    this.#brush();
  }

  /** Dragging on the overview sets the interval that the timeline shows; dragging within that interval moves it. */
  #brush(): void {
    const { canvas } = this.#overview;
    const [first, last] = this.context.store.whole;
    const at = (x: number): number =>
      first + (Math.max(0, x - this.#gutter) / Math.max(1, this.#overview.width - this.#gutter)) * (last - first);
    let from: number | null = null;
    let moving: readonly [number, number] | null = null;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      from = at(event.offsetX);
      const [left, right] = this.context.store.now.window;
      const part = right - left < 0.98 * (last - first);
      moving = part && from >= left && from <= right ? [left, right] : null;
    });
    canvas.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const to = at(event.offsetX);
      if (moving) this.#set(moving[0] + to - from, moving[1] + to - from);
      else if (Math.abs(to - from) > (last - first) / 200) this.#set(Math.min(from, to), Math.max(from, to));
    });
    const lift = (): void => {
      from = null;
    };
    canvas.addEventListener("pointerup", lift);
    canvas.addEventListener("pointercancel", lift);
    canvas.addEventListener("dblclick", () => this.#set(first, last));
  }

  #row(y: number): number {
    return Math.floor(((y - TOP) / (this.#surface.height - TOP)) * rowCount(this.#rows));
  }

  #task(x: number, y: number): number {
    if (y < TOP || x < this.#gutter) return -1;
    const [from, to] = this.context.store.now.window;
    return taskAt(this.#rows, this.#row(y), this.#time(x), (1.5 * (to - from)) / this.#span);
  }

  #stepAt(x: number, y: number): number {
    if (y < AXIS + STRIP || y >= TOP || x < this.#gutter) return -1;
    const ms = this.#time(x);
    return this.context.data.timeline.path.findIndex((each) => each.start_ms <= ms && ms < each.end_ms);
  }

  #choose(x: number, y: number): void {
    const { store, data } = this.context;
    const task = this.#task(x, y);
    const stage = task >= 0 ? this.#rows.stage[task]! : (data.timeline.path[this.#stepAt(x, y)]?.stage ?? -1);
    const node = data.dag.nodes[stage];
    if (node) store.toggle(ofStage(stage, shown(node.id, 40)));
    else store.set({ choice: null });
  }

  #hover(event: PointerEvent): void {
    const lines = this.#note(event.offsetX, event.offsetY);
    this.#surface.canvas.style.cursor = lines.length ? "pointer" : "grab";
    if (lines.length) this.#tip.show(event.clientX, event.clientY, lines);
    else this.#tip.hide();
  }

  #note(x: number, y: number): string[] {
    const { data } = this.context;
    const figures = new Figures(data.timeline.figure);
    const intervalText = (from: number, to: number): string =>
      `${figures.text(to - from)}, from ${figures.number(from)} to ${figures.text(to)}`;
    const task = this.#task(x, y);
    if (task >= 0) {
      const node = data.dag.nodes[this.#rows.stage[task]!];
      const worker = data.timeline.workers[workerOf(this.#rows, this.#row(y))];
      const count = this.#rows.count[task]!;
      const called = data.called[this.#names[this.#rows.resource[task]!] ?? OTHER] ?? "";
      return [
        shown(node?.id ?? data.words.task, 60),
        node ? shown(node.name, 120) : "",
        `${count > 1 ? `${grouped(count)} ${data.words.tasks}, ` : ""}${intervalText(this.#rows.start[task]!, this.#rows.end[task]!)}`,
        `mostly: ${called}`,
        worker ? shown([worker.name, worker.host].filter(Boolean).join("  "), 80) : "",
      ].filter(Boolean);
    }
    const step = data.timeline.path[this.#stepAt(x, y)];
    if (step)
      return [
        shown(step.id, 60),
        shown(step.name, 120),
        intervalText(step.start_ms, step.end_ms),
        partsText(this.context, step.parts),
      ].filter(Boolean);
    if (x < this.#gutter || y < AXIS || y > AXIS + STRIP) return [];
    const ms = this.#time(x);
    const found = data.timeline.driver.find((each) => each.start_ms <= ms && ms < each.end_ms);
    return found ? [data.words.driver, shown(found.name, 160), intervalText(found.start_ms, found.end_ms)] : [];
  }
}

function byResource(names: readonly string[]): Colouring {
  return { paints: names.map(paintOf), of: (_, resource) => resource };
}

function coloured(rows: Rows, colouring: Colouring): Rows {
  return { ...rows, resource: Uint8Array.from(rows.stage, (stage, task) => colouring.of(stage, rows.resource[task]!)) };
}

/** The position of the largest part. */
function dominant(parts: Parts, names: readonly string[]): number {
  return names.reduce((best, name, place) => ((parts[name] ?? 0) > (parts[names[best]!] ?? 0) ? place : best), 0);
}

function apart(pointers: ReadonlyMap<number, number>): number {
  const [a = 0, b = 0] = pointers.values();
  return pointers.size === 2 ? Math.abs(a - b) : 0;
}

function middle(pointers: ReadonlyMap<number, number>): number {
  const [a = 0, b = 0] = pointers.values();
  return (a + b) / 2;
}

/** The pixels of a small square. */
function painted(side: number, paint: (brush: CanvasRenderingContext2D) => void): Uint32Array {
  const canvas = document.createElement("canvas");
  canvas.width = side;
  canvas.height = side;
  const brush = canvas.getContext("2d", { willReadFrequently: true });
  if (!brush) throw new Error("this browser has no canvas");
  paint(brush);
  return new Uint32Array(brush.getImageData(0, 0, side, side).data.buffer);
}
