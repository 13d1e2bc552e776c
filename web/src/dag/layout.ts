// The layout of one scope's stages and their dependencies.

import { Graph, layout } from "@dagrejs/dagre";
import type { Dag } from "../data.ts";

export const NODE = { width: 172, height: 58 } as const;

/** A node that is not a stage and connects many stages to many: a point that their lines share. */
export const JOINT = { width: 8, height: 8 } as const;

/** Maximum nodes that are laid out: more are slow and hard to follow. */
export const MAX_NODES = 120;

export interface Placed {
  readonly node: number;
  /** Upper left corner. */
  readonly x: number;
  readonly y: number;
}

export interface Drawn {
  readonly width: number;
  readonly height: number;
  readonly stages: readonly Placed[];
  readonly joints: readonly Placed[];
  readonly edges: readonly Edge[];
}

export interface Edge {
  readonly from: number;
  readonly to: number;
  readonly points: readonly (readonly [number, number])[];
}

/** The stages of a scope (null: those without a scope); if there are too many, those with most critical-path time. */
export function chosenNodes(
  dag: Dag,
  scope: string | null,
): { readonly nodes: readonly number[]; readonly of: number } {
  const all = dag.nodes.map((_, node) => node).filter((node) => isOf(dag, node, scope));
  if (all.length <= MAX_NODES) return { nodes: all, of: all.length };
  const length = (node: number): number => dag.nodes[node]!.end_ms - dag.nodes[node]!.start_ms;
  const byWeight = (a: number, b: number): number =>
    dag.nodes[b]!.path_ms - dag.nodes[a]!.path_ms || length(b) - length(a) || a - b;
  return {
    nodes: all
      .sort(byWeight)
      .slice(0, MAX_NODES)
      .sort((a, b) => a - b),
    of: all.length,
  };
}

function isOf(dag: Dag, node: number, scope: string | null): boolean {
  const { is_stage, scope: mine } = dag.nodes[node]!;
  return is_stage && mine === scope;
}

/** Edges between the kept nodes, and the points that some of them share. */
export interface Ties {
  readonly joints: readonly number[];
  readonly edges: readonly (readonly [number, number])[];
}

/** Connects the kept nodes across those that are not kept; through a shared point if that needs fewer lines. */
export function ties(dag: Dag, kept: ReadonlySet<number>): Ties {
  const [before, after] = [new Map<number, Set<number>>(), new Map<number, Set<number>>()];
  const add = (map: Map<number, Set<number>>, key: number, value: number): void => {
    map.set(key, (map.get(key) ?? new Set()).add(value));
  };
  for (const { from, to } of dag.edges) {
    add(after, from, to);
    add(before, to, from);
  }
  const joints: number[] = [];
  for (let node = 0; node < dag.nodes.length; node += 1) {
    if (kept.has(node)) continue;
    const sources = before.get(node) ?? new Set<number>();
    const targets = after.get(node) ?? new Set<number>();
    if (!dag.nodes[node]!.is_stage && sources.size * targets.size > sources.size + targets.size) {
      joints.push(node);
      continue;
    }
    for (const source of sources) after.get(source)?.delete(node);
    for (const target of targets) before.get(target)?.delete(node);
    for (const source of sources)
      for (const target of targets) {
        add(after, source, target);
        add(before, target, source);
      }
    before.delete(node);
    after.delete(node);
  }
  // A point without sources or without targets is not drawn.
  const used = joints.filter((node) => before.get(node)?.size && after.get(node)?.size);
  const drawn = new Set([...kept, ...used]);
  const edges = [...after].flatMap(([from, targets]) => [...targets].map((to) => [from, to] as const));
  return { joints: used, edges: edges.filter(([from, to]) => from !== to && drawn.has(from) && drawn.has(to)) };
}

/** Lays nodes out from top to bottom. */
export function placed(dag: Dag, nodes: readonly number[]): Drawn {
  const graph = new Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 30, marginx: 10, marginy: 10 });
  graph.setDefaultEdgeLabel(() => ({}));
  const { joints, edges } = ties(dag, new Set(nodes));
  for (const node of nodes) graph.setNode(String(node), { ...NODE });
  for (const node of joints) graph.setNode(String(node), { ...JOINT });
  for (const [from, to] of edges) graph.setEdge(String(from), String(to), {});
  layout(graph);
  const size = graph.graph() as { readonly width?: number; readonly height?: number };
  const corner = (node: number, { width, height }: { readonly width: number; readonly height: number }): Placed => {
    const at = graph.node(String(node)) as { readonly x: number; readonly y: number };
    return { node, x: at.x - width / 2, y: at.y - height / 2 };
  };
  return {
    width: Math.max(1, size.width ?? 0),
    height: Math.max(1, size.height ?? 0),
    stages: nodes.map((node) => corner(node, NODE)),
    joints: joints.map((node) => corner(node, JOINT)),
    edges: graph.edges().map((edge) => {
      const { points } = graph.edge(edge) as { readonly points: readonly { readonly x: number; readonly y: number }[] };
      return { from: Number(edge.v), to: Number(edge.w), points: points.map(({ x, y }) => [x, y] as const) };
    }),
  };
}
