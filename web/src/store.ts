// The selection that all views share.  A view subscribes to it and redraws when it changes.

/** The selected stages: one, or those in which an operator ran. */
export interface Choice {
  /** The origin of the choice; choosing the same again clears it. */
  readonly by: string;
  readonly label: string;
  /** Nodes of the DAG. */
  readonly stages: ReadonlySet<number>;
}

export interface Selection {
  readonly choice: Choice | null;
  /** The interval that the timeline shows, in ms since application start. */
  readonly window: readonly [number, number];
}

export class Store {
  #now: Selection;
  readonly #views: ((now: Selection, before: Selection) => void)[] = [];

  constructor(readonly whole: readonly [number, number]) {
    this.#now = { choice: null, window: whole };
  }

  get now(): Selection {
    return this.#now;
  }

  set(change: Partial<Selection>): void {
    const before = this.#now;
    this.#now = { ...before, ...change };
    for (const view of this.#views) view(this.#now, before);
  }

  /** Sets the choice, or clears it if it is set already. */
  toggle(choice: Choice): void {
    this.set({ choice: this.#now.choice?.by === choice.by ? null : choice });
  }

  /** Whether a node is chosen; true if no choice is set. */
  has(node: number): boolean {
    return this.#now.choice?.stages.has(node) ?? true;
  }

  subscribe(view: (now: Selection, before: Selection) => void): void {
    this.#views.push(view);
  }

  /** Calls `view` only when the choice changes. */
  onChoice(view: (choice: Choice | null) => void): void {
    this.subscribe((now, before) => {
      if (now.choice !== before.choice) view(now.choice);
    });
  }
}

/** The choice of one stage, by its position among the nodes. */
export function ofStage(node: number, label: string): Choice {
  return { by: `stage ${node}`, label, stages: new Set([node]) };
}
