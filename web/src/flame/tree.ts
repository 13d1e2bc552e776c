// Sampled stacks as a tree, from the root or from the leaf, summed over the chosen stages and operator; its layout.

import type { Flame } from "../data.ts";

/** The samples to sum: all, those of some stages, or of one operator. */
export interface Filter {
  /** Nodes of the DAG; null for all. */
  readonly stages: ReadonlySet<number> | null;
  /** Position among the flame graph's operators; null for all. */
  readonly operator: number | null;
}

export interface Tree {
  /** A parent comes before its children; node 0 is the root, with parent and frame -1. */
  readonly parent: Int32Array;
  readonly frame: Int32Array;
  /** ms in the node and its descendants. */
  readonly total: Float64Array;
  readonly self: Float64Array;
  /** ms by node and kind, `kinds` values per node. */
  readonly byKind: Float64Array;
  readonly kinds: number;
}

export interface Layout {
  readonly depth: Int32Array;
  /** Shares of the whole width. */
  readonly left: Float64Array;
  readonly right: Float64Array;
  /** Nodes by depth, each from left to right. */
  readonly levels: readonly Int32Array[];
  readonly total_ms: number;
}

/** The tree from the root: callers above the functions that they call. */
export function topDown(flame: Flame, filter: Filter): Tree {
  const kinds = flame.kinds.length;
  const byKind = new Float64Array(flame.parent.length * kinds);
  for (const row of chosen(flame, filter)) {
    const at = flame.self.node[row]! * kinds;
    flame.self.ms.forEach((column, kind) => {
      byKind[at + kind] = byKind[at + kind]! + column[row]!;
    });
  }
  const self = Float64Array.from(flame.parent, (_, node) => sumOf(byKind, node, kinds));
  return { ...summed(Int32Array.from(flame.parent), Int32Array.from(flame.frame), byKind, kinds), self };
}

/** Maximum callers of a leaf in the tree, because a deep stack would add a node for each. */
const DEEPEST = 100;

/** The tree from the leaf: functions above their callers.  Node 0 is the root here too. */
export function bottomUp(flame: Flame, filter: Filter): Tree {
  const kinds = flame.kinds.length;
  const known = new Map<number, number>();
  const parent = [-1];
  const frame = [-1];
  const ends: number[] = [];
  const rows = [...chosen(flame, filter)];
  const wide = flame.frames.length;
  for (const row of rows) {
    let at = 0;
    let depth = 0;
    for (let node = flame.self.node[row]!; node > 0 && depth < DEEPEST; node = flame.parent[node]!) {
      depth += 1;
      const key = at * wide + flame.frame[node]!;
      let next = known.get(key);
      if (next === undefined) {
        next = parent.length;
        known.set(key, next);
        parent.push(at);
        frame.push(flame.frame[node]!);
      }
      at = next;
    }
    ends.push(at);
  }
  const byKind = new Float64Array(parent.length * kinds);
  rows.forEach((row, index) => {
    const at = ends[index]! * kinds;
    flame.self.ms.forEach((column, kind) => {
      byKind[at + kind] = byKind[at + kind]! + column[row]!;
    });
  });
  const tree = summed(Int32Array.from(parent), Int32Array.from(frame), byKind, kinds);
  // The self time of a function is the total of its node below the root.
  const self = tree.total.map((total, node) => (tree.parent[node] === 0 ? total : 0));
  return { ...tree, self };
}

/** Rows of sampled time that pass a filter. */
function* chosen(flame: Flame, { stages, operator }: Filter): Generator<number> {
  for (let row = 0; row < flame.self.node.length; row += 1) {
    if (stages !== null && !stages.has(flame.self.stage[row]!)) continue;
    if (operator !== null && flame.self.operator[row] !== operator) continue;
    yield row;
  }
}

function sumOf(byKind: Float64Array, node: number, kinds: number): number {
  let total = 0;
  for (let kind = 0; kind < kinds; kind += 1) total += byKind[node * kinds + kind]!;
  return total;
}

/** Adds each node's time to its parent's. */
function summed(parent: Int32Array, frame: Int32Array, byKind: Float64Array, kinds: number): Omit<Tree, "self"> {
  for (let node = parent.length - 1; node > 0; node -= 1)
    for (let kind = 0; kind < kinds; kind += 1) {
      const at = parent[node]! * kinds + kind;
      byKind[at] = byKind[at]! + byKind[node * kinds + kind]!;
    }
  return { parent, frame, total: Float64Array.from(parent, (_, node) => sumOf(byKind, node, kinds)), byKind, kinds };
}

/** The kind with most of a node's time; `mixed` (the number of kinds) if no resource has enough of it. */
export function kindOf(tree: Tree, node: number, mixedBelow: number): number {
  const resources = tree.kinds - 2; // waiting and unknown follow them
  let [best, most, used] = [tree.kinds - 1, 0, 0];
  for (let kind = 0; kind < tree.kinds; kind += 1) {
    const value = tree.byKind[node * tree.kinds + kind]!;
    if (kind < resources) used += value;
    if (value > most) [best, most] = [kind, value];
  }
  const rest = tree.total[node]! - used;
  if (used >= rest && used > 0 && (best >= resources || most < mixedBelow * used)) return tree.kinds;
  return best;
}

/** The layout of all nodes except the root: children within their parent, those with the most time first. */
export function laidOut(tree: Tree): Layout {
  const count = tree.parent.length;
  const children: number[][] = Array.from({ length: count }, () => []);
  for (let node = 1; node < count; node += 1) if (tree.total[node]! > 0) children[tree.parent[node]!]!.push(node);
  const roots = children[0] ?? [];
  const byTime = (a: number, b: number): number => tree.total[b]! - tree.total[a]! || a - b;
  const whole = tree.total[0] ?? 0;
  const [depth, left, right] = [new Int32Array(count), new Float64Array(count), new Float64Array(count)];
  const levels: number[][] = [];
  const place = (nodes: number[], from: number, level: number): void => {
    let at = from;
    for (const node of nodes.sort(byTime)) {
      depth[node] = level;
      left[node] = at;
      at += tree.total[node]! / (whole || 1);
      right[node] = at;
    }
  };
  place(roots, 0, 0);
  for (let level = roots; level.length; ) {
    levels.push(level);
    const next: number[] = [];
    for (const node of level) {
      place(children[node]!, left[node]!, depth[node]! + 1);
      for (const child of children[node]!) next.push(child);
    }
    level = next;
  }
  return { depth, left, right, levels: levels.map((each) => Int32Array.from(each)), total_ms: whole };
}

/** ms in matching nodes, each counted once: a match includes its descendants. */
export function matchedTime(tree: Tree, matches: (frame: number) => boolean): number {
  const inside = new Uint8Array(tree.parent.length);
  let ms = 0;
  for (let node = 1; node < tree.parent.length; node += 1) {
    inside[node] = inside[tree.parent[node]!]!;
    if (inside[node] || !matches(tree.frame[node]!)) continue;
    inside[node] = 1;
    ms += tree.total[node]!;
  }
  return ms;
}
