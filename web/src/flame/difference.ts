// The stacks of two sides as one tree: the time of each node before and after, and the step of its colour.

import type { Flame } from "../data.ts";
import { bottomUp, type Tree, topDown } from "./tree.ts";

/** Sampled stacks of both sides; times are ms of one run. */
export interface FlameChange {
  readonly kinds: readonly string[];
  readonly frames: readonly string[];
  /** A parent comes before its children; node 0 is the root, with frame -1. */
  readonly parent: readonly number[];
  readonly frame: readonly number[];
  /** Time that ends in a node; a column for each kind. */
  readonly self: {
    readonly node: readonly number[];
    readonly before: readonly (readonly number[])[];
    readonly after: readonly (readonly number[])[];
    /** Variance of the change of a row from sampling alone, ms². */
    readonly variance: readonly number[];
  };
  readonly total_ms: readonly [number, number];
  /** A change within so many standard deviations counts as none. */
  readonly deviations: number;
}

export type Width = "both" | "before" | "after";

export interface Choice {
  /** Position of a kind of time; null for all. */
  readonly kind: number | null;
  /** Compares shares of the sampled time instead of times. */
  readonly shares: boolean;
  /** The width of a box: its time before, after, or the mean of both. */
  readonly width: Width;
}

export interface Change {
  readonly before: number;
  readonly after: number;
  /** Standard deviation of the difference from sampling alone. */
  readonly noise: number;
}

/** Both sides as one tree, whose totals are the widths of boxes; `byKind` has the kinds before, after, the variance. */
export function differenceTree(flame: FlameChange, inverted: boolean, choice: Choice): Tree {
  const { before, after, variance } = flame.self;
  const rows = flame.self.node.length;
  const none = Array.from({ length: rows }, () => -1);
  const plain: Flame = {
    kinds: [...flame.kinds, ...flame.kinds, "variance"],
    frames: flame.frames,
    labels: new Map(),
    parent: flame.parent,
    frame: flame.frame,
    operators: [],
    self: { node: flame.self.node, stage: none, operator: none, ms: [...before, ...after, variance] },
    mixedBelow: 0,
    why: "",
    coarsened: "",
  };
  const tree = (inverted ? bottomUp : topDown)(plain, { stages: null, operator: null });
  const total = tree.total.map((_, node) => {
    const change = changeOf(flame, tree, node, choice);
    if (choice.width === "both") return (change.before + change.after) / 2;
    return choice.width === "before" ? change.before : change.after;
  });
  return { ...tree, total };
}

/** The time of a node and its descendants before and after; with shares, that after is scaled to the total before. */
export function changeOf(flame: FlameChange, tree: Tree, node: number, { kind, shares }: Choice): Change {
  const count = flame.kinds.length;
  const at = node * tree.kinds;
  let [before, after] = [0, 0];
  for (let each = 0; each < count; each += 1) {
    if (kind !== null && kind !== each) continue;
    before += tree.byKind[at + each]!;
    after += tree.byKind[at + count + each]!;
  }
  const scale = shares && flame.total_ms[1] > 0 ? flame.total_ms[0] / flame.total_ms[1] : 1;
  const noise = Math.sqrt(tree.byKind[at + 2 * count]!) * Math.max(1, scale);
  return { before, after: after * scale, noise };
}

/** Ratios of after to before from which a change has the next stronger colour. */
export const RATIOS = [1.25, 2, 4] as const;

export const STRONGEST = RATIOS.length + 1;

/** The step of a change: 0 within the noise of sampling, negative for less time, up to STRONGEST for new or gone. */
export function stepOf({ before, after, noise }: Change, deviations: number): number {
  const change = after - before;
  if (change === 0 || Math.abs(change) <= deviations * noise) return 0;
  const [less, more] = [Math.min(before, after), Math.max(before, after)];
  const size = less <= 0 ? STRONGEST : 1 + RATIOS.filter((each) => more / less >= each).length;
  return change > 0 ? size : -size;
}
