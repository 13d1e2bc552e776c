// The plan's operators, by their share of task time.

import { bar } from "../bars.ts";
import { type Context, sum } from "../context.ts";
import { button, el, fill } from "../dom.ts";
import { shown } from "../names.ts";

const FIRST = 14;

export class Operators {
  readonly element = el("div", { class: "operators" });
  #scope: string | null = null;
  #all = false;

  constructor(readonly context: Context) {
    context.store.onChoice(() => this.#draw());
  }

  /** Shows the operators of one scope's plan. */
  ofScope(scope: string | null): void {
    this.#scope = scope;
    this.#draw();
  }

  /** The operators of the chosen stage, else of the plan; choosing an operator does not hide others. */
  #rows(): { readonly place: number; readonly ms: number }[] {
    const { data, figures, store } = this.context;
    const { choice } = store.now;
    const stages = choice?.by.startsWith("stage ") ? choice.stages : null;
    return data.dag.operators
      .map((operator, place) => ({ operator, place, ms: sum(operator.parts) }))
      .filter(({ operator }) => operator.scope === null || operator.scope === this.#scope)
      .filter(({ operator }) => stages === null || operator.stages.some((node) => stages.has(node)))
      .filter(({ ms }) => figures.number(ms) !== ".")
      .sort((a, b) => b.ms - a.ms);
  }

  #draw(): void {
    const { data, figures } = this.context;
    const rows = this.#rows();
    this.element.hidden = !data.dag.operators.length;
    const longest = rows[0]?.ms ?? 1;
    const first = this.#all ? rows : rows.slice(0, FIRST);
    const rest = rows.length - first.length;
    fill(
      this.element,
      el("h3", {}, "Operators ", el("span", { class: "unit" }, `${data.words.task} time [${figures.of.name}]`)),
      el("ol", {}, ...first.map(({ place, ms }) => el("li", {}, this.#row(place, ms, longest)))),
      rest > 0 && button(`Show all ${rows.length}`, () => this.#showAll(), { class: "quiet more" }),
    );
  }

  #showAll(): void {
    this.#all = true;
    this.#draw();
  }

  #row(place: number, ms: number, longest_ms: number): HTMLElement {
    const { data, figures, store } = this.context;
    const operator = data.dag.operators[place]!;
    const by = `operator ${place}`;
    const row = el(
      "button",
      {
        type: "button",
        class: operator.node_id === null ? "aside" : "",
        "aria-pressed": String(store.now.choice?.by === by),
        title: shown(operator.detail),
      },
      el("span", { class: "name" }, shown(operator.name, 120)),
      el("span", { class: "figure" }, figures.number(ms)),
      bar(this.context, operator.parts, longest_ms, "thin"),
    );
    row.addEventListener("click", () =>
      store.toggle({ by, label: shown(operator.name, 40), stages: new Set(operator.stages) }),
    );
    return row;
  }
}
