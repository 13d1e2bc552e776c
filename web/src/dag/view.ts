// The DAG of each scope with time by resource on its nodes, and next to it the plan's operators.

import { partsText } from "../bars.ts";
import { type Context, partNames, sum } from "../context.ts";
import type { DagNode } from "../data.ts";
import { append, el, fill, svg } from "../dom.ts";
import { cutRight, printable, shown } from "../names.ts";
import { paintOf } from "../palette.ts";
import { type Choice, ofStage } from "../store.ts";
import { chosenNodes, JOINT, NODE, placed } from "./layout.ts";
import { Operators } from "./operators.ts";

const PAD = 10;
const SMALLEST = 0.75;
const BAR = { y: 43, height: 7 } as const;

export class DagView {
  readonly element: HTMLElement;
  readonly #picture: HTMLElement;
  readonly #note = el("p", { class: "aside small" });
  readonly #operators: Operators;
  readonly #scopes: readonly (string | null)[];
  readonly #select: HTMLSelectElement | null;
  #drawn = new Map<number, SVGGElement>();
  #scope: string | null;

  constructor(readonly context: Context) {
    const { words } = context.data;
    this.#picture = el("div", {
      class: "dag-picture",
      tabindex: 0,
      role: "region",
      "aria-label": `${words.stages} and their dependencies`,
    });
    this.#scopes = scopesByTime(context);
    this.#scope = this.#scopes[0] ?? null;
    this.#select = this.#scopes.length > 1 ? this.#choice() : null;
    this.#operators = new Operators(context);
    this.element = el(
      "section",
      { id: "stages", "aria-labelledby": "stages-title" },
      el(
        "div",
        { class: "section-head" },
        el("h2", { id: "stages-title" }, capitalised(words.stages)),
        this.#select && el("label", { class: "tools" }, words.scope, this.#select),
      ),
      el("div", { class: "dag" }, el("div", {}, this.#picture, this.#note), this.#operators.element),
    );
    this.#draw();
    context.store.onChoice((choice) => {
      this.#follow(choice);
      this.#mark();
    });
  }

  #choice(): HTMLSelectElement {
    const { dag } = this.context.data;
    const options = this.#scopes.map((scope, place) => {
      const found = dag.scopes.find((each) => each.id === scope);
      const text = found ? `${shown(found.id, 30)}  ${shown(found.name, 60)}` : "–";
      return el("option", { value: place }, text);
    });
    const made = el("select", {}, ...options);
    made.addEventListener("change", () => {
      this.#scope = this.#scopes[Number(made.value)] ?? null;
      this.#draw();
    });
    return made;
  }

  /** Shows the scope of a stage that was chosen in another view. */
  #follow(choice: Choice | null): void {
    const [first] = choice?.stages ?? [];
    if (first === undefined || this.#drawn.has(first)) return;
    const scope = this.context.data.dag.nodes[first]?.scope ?? null;
    const place = this.#scopes.indexOf(scope);
    if (place < 0 || scope === this.#scope) return;
    this.#scope = scope;
    if (this.#select) this.#select.value = String(place);
    this.#draw();
  }

  #draw(): void {
    const { dag, words } = this.context.data;
    const { nodes, of } = chosenNodes(dag, this.#scope);
    const { width, height, stages, joints, edges } = placed(dag, nodes);
    const critical = (node: number): boolean => dag.nodes[node]!.path_ms > 0;
    const longest = Math.max(1, ...nodes.map((node) => sum(dag.nodes[node]!.parts)));
    this.#drawn = new Map(stages.map(({ node, x, y }) => [node, this.#node(node, x, y, longest)]));
    const picture = svg(
      "svg",
      { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": words.stages },
      ...edges.map(({ from, to, points }) =>
        svg("path", { class: `edge${critical(from) && critical(to) ? " critical" : ""}`, d: curved(points) }),
      ),
      ...joints.map(({ x, y }) =>
        svg("circle", { class: "joint", cx: x + JOINT.width / 2, cy: y + JOINT.height / 2, r: 3 }),
      ),
      ...this.#drawn.values(),
    );
    // A picture slightly wider than its place is scaled down; a wider one is scrolled.
    picture.style.maxWidth = `max(100%, ${Math.round(SMALLEST * width)}px)`;
    fill(this.#picture, picture);
    const few = nodes.length < of ? `the ${nodes.length} of ${of} ${words.stages} with the most time are shown` : "";
    this.#note.textContent = [few, dag.reduced].filter(Boolean).join("; ");
    this.#operators.ofScope(this.#scope);
    this.#mark();
    const longestPath = nodes.toSorted((a, b) => dag.nodes[b]!.path_ms - dag.nodes[a]!.path_ms)[0];
    if (longestPath !== undefined) requestAnimationFrame(() => this.#reveal(longestPath));
  }

  #node(place: number, x: number, y: number, longest_ms: number): SVGGElement {
    const { data, figures, store } = this.context;
    const node = data.dag.nodes[place]!;
    const { width, height } = NODE;
    const critical = node.path_ms > 0;
    const [id, name] = [cutRight(printable(node.id.slice(0, 60)), 14), cutRight(shown(node.name, 80), 25)];
    const length = figures.text(node.end_ms - node.start_ms);
    const made = svg(
      "g",
      {
        class: `node${critical ? " critical" : ""}`,
        transform: `translate(${x} ${y})`,
        tabindex: 0,
        role: "button",
        "aria-description": `${partsText(this.context, node.parts)}${critical ? ", on the critical path" : ""}`,
      },
      svg("rect", { class: "box", width, height, rx: 7 }),
      svg("text", { class: "id", x: PAD, y: 19 }, id),
      svg("text", { class: "figure", x: width - PAD, y: 19 }, length),
      svg("text", { class: "name", x: PAD, y: 35 }, name),
      svg("rect", { class: "track", x: PAD, ...BAR, width: width - 2 * PAD, rx: 1.5 }),
    );
    append(made, this.#bar(node, longest_ms));
    const choose = (): void => store.toggle(ofStage(place, shown(node.id, 40)));
    made.addEventListener("click", choose);
    made.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose();
    });
    return made;
  }

  /** Time of the node's tasks by resource; the node with the most time has a bar of the full width. */
  #bar(node: DagNode, longest_ms: number): SVGElement[] {
    const made: SVGElement[] = [];
    let at: number = PAD;
    partNames(this.context).forEach((name, place) => {
      const paint = paintOf(name, place);
      const width = ((NODE.width - 2 * PAD) * (node.parts[name] ?? 0)) / longest_ms;
      if (width <= 0) return;
      made.push(svg("rect", { class: paint.variable.slice(2), x: at, ...BAR, width }));
      if (paint.texture !== "plain")
        made.push(svg("rect", { fill: `url(#texture-${paint.texture})`, x: at, ...BAR, width }));
      at += width;
    });
    return made;
  }

  #mark(): void {
    const { choice } = this.context.store.now;
    for (const [node, element] of this.#drawn) {
      const chosen = choice?.stages.has(node) ?? false;
      element.classList.toggle("chosen", chosen);
      element.classList.toggle("faded", choice !== null && !chosen);
      element.setAttribute("aria-pressed", String(chosen));
    }
    const [first] = choice?.stages ?? [];
    if (first !== undefined) this.#reveal(first);
  }

  /** Scrolls the picture, not the page, to a node. */
  #reveal(node: number): void {
    const element = this.#drawn.get(node);
    if (!element) return;
    const [box, frame] = [element.getBoundingClientRect(), this.#picture.getBoundingClientRect()];
    if (box.left < frame.left || box.right > frame.right)
      this.#picture.scrollLeft += box.left - frame.left - (frame.width - box.width) / 2;
    if (box.top < frame.top || box.bottom > frame.bottom)
      this.#picture.scrollTop += box.top - frame.top - (frame.height - box.height) / 2;
  }
}

/** Scopes that have stages, the one with most time on the critical path first. */
function scopesByTime(context: Context): (string | null)[] {
  const time = new Map<string | null, number>();
  for (const { is_stage, scope, path_ms } of context.data.dag.nodes)
    if (is_stage) time.set(scope, (time.get(scope) ?? 0) + path_ms);
  return [...time.keys()].sort((a, b) => (time.get(b) ?? 0) - (time.get(a) ?? 0));
}

function curved(points: readonly (readonly [number, number])[]): string {
  const [first, ...rest] = points;
  const last = rest.at(-1);
  if (!first || !last) return "";
  if (rest.length < 2) return `M${first.join(" ")}L${last.join(" ")}`;
  let path = `M${first.join(" ")}`;
  for (let index = 0; index + 1 < rest.length; index += 1) {
    const [[x, y], [nextX, nextY]] = [rest[index]!, rest[index + 1]!];
    const end = index + 2 === rest.length ? [nextX, nextY] : [(x + nextX) / 2, (y + nextY) / 2];
    path += `Q${x} ${y} ${end.join(" ")}`;
  }
  return path;
}

/** The textures that overlay bars in SVG. */
export function textures(): SVGSVGElement {
  const tile = (id: string, side: number, d: string): SVGPatternElement =>
    svg(
      "pattern",
      { id: `texture-${id}`, width: side, height: side, patternUnits: "userSpaceOnUse" },
      svg("path", { d, class: "ink-in-bars" }),
    );
  return svg(
    "svg",
    { class: "off-screen", width: 0, height: 0, "aria-hidden": "true" },
    svg(
      "defs",
      {},
      tile("diagonal", 6, "M-1 1l2 -2M0 6l6 -6M5 7l2 -2"),
      tile("dots", 5, "M1.5 1.5h1.2"),
      tile("cross", 6, "M0 6l6 -6M0 0l6 6"),
      tile("lines", 4, "M0 2h4"),
    ),
  );
}

function capitalised(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}
