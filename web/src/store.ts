// What is chosen, for all views at once.  A view subscribes to it and draws itself anew when it changes.

/** Groups that all views are about: a stage, or those that an operator ran in. */
export interface Choice {
  /** What chose them, so that choosing it again unchooses. */
  readonly by: string;
  readonly label: string;
  /** Nodes of the DAG. */
  readonly groups: ReadonlySet<number>;
}

export interface Selection {
  readonly choice: Choice | null;
  /** The stretch of time that the timeline shows, in ms since application start. */
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

  /** Chooses, or unchooses what is chosen already. */
  toggle(choice: Choice): void {
    this.set({ choice: this.#now.choice?.by === choice.by ? null : choice });
  }

  /** Whether a node is chosen, or nothing is. */
  has(node: number): boolean {
    return this.#now.choice?.groups.has(node) ?? true;
  }

  subscribe(view: (now: Selection, before: Selection) => void): void {
    this.#views.push(view);
  }

  /** Only when the choice changes. */
  onChoice(view: (choice: Choice | null) => void): void {
    this.subscribe((now, before) => {
      if (now.choice !== before.choice) view(now.choice);
    });
  }
}

/** One group, by its place among the nodes. */
export function ofGroup(node: number, label: string): Choice {
  return { by: `group ${node}`, label, groups: new Set([node]) };
}
