// The page's data as its views use them: everything by its place among the nodes of the DAG, names cut and printable.

import type { TimeUnit } from "./figures.ts";
import type { Basis, Parts, SaidTable, UsualWhatIf, Words } from "./picture.ts";

export type { Basis, Parts, UsualWhatIf, Words } from "./picture.ts";

export interface Resource {
  readonly name: string;
  readonly device: string;
}

export interface Recommendation {
  readonly text: string;
  /** What it saves and how that is known; may be empty. */
  readonly saving: string;
  readonly lines: readonly string[];
}

export interface FindingSaid {
  readonly cost: string;
  readonly cost_ms: number;
  readonly what: string;
  readonly basis: Basis;
  readonly advice: string;
}

/** Sentences; empty ones have nothing to say. */
export interface Said {
  readonly facts: readonly string[];
  /** How it ended, and what no figure has in it. */
  readonly outcome: readonly string[];
  readonly headline: string;
  /** What the headline rests on. */
  readonly asides: readonly string[];
  readonly recommendations: readonly Recommendation[];
  readonly nothing_to_do: string;
  readonly other: string;
  readonly usual: readonly UsualWhatIf[];
  readonly same: string;
  readonly unknown: readonly string[];
  readonly check: string;
  readonly findings: readonly FindingSaid[];
  readonly disagreements: readonly string[];
  readonly assumptions: readonly string[];
  readonly unseen: readonly string[];
  readonly told: readonly string[];
  /** Of a flow its groups, by how busy they are. */
  readonly stations: SaidTable;
  readonly next: string;
  /** How a figure of a what-if is known, in a word or two. */
  readonly how: Readonly<Record<"recorded" | "exact" | "between" | "refused" | "unknown", string>>;
}

/** What `predict` says of one setting. */
export interface Answer {
  readonly predicted_ms: number | null;
  readonly low_ms: number | null;
  readonly high_ms: number | null;
  /** A resource or a cause. */
  readonly bottleneck: string | null;
  readonly path_parts: Parts | null;
  /** ms of each group, by the DAG's nodes. */
  readonly groups: readonly (number | null)[] | null;
  readonly refused: string | null;
}

export interface Point extends Answer {
  readonly setting: string;
  readonly ratio: number;
  /** The value as a reader names it: `4`, `2x`. */
  readonly text: string;
}

export interface Setting {
  readonly key: string;
  readonly label: string;
  /** What the run had, where amounts are whole numbers: there is no half a slot. */
  readonly counted: number | null;
  /** By ratio, also the recorded run's. */
  readonly points: readonly Point[];
  /** The ratio up to which more is worth it. */
  readonly knee: number | null;
  readonly knee_text: string;
}

export interface PairPoint extends Answer {
  readonly ratios: readonly [number, number];
}

export interface Pair {
  readonly keys: readonly [string, string];
  readonly points: readonly PairPoint[];
}

export interface WhatIf {
  readonly base_ms: number;
  readonly base: Answer;
  readonly settings: readonly Setting[];
  readonly pairs: readonly Pair[];
  /** Why there are fewer settings than there might be; may be empty. */
  readonly coarser: string;
  /** The line to paste; `{settings}` stands for them. */
  readonly command: string;
}

/** Columns, a row each unit, or a row for several that were drawn together. */
export interface Units {
  readonly lane: readonly number[];
  readonly start: readonly number[];
  readonly length: readonly number[];
  /** A node of the DAG, -1 for groups that are not told apart. */
  readonly group: readonly number[];
  /** The resource with most of its time, as many as there are for `other`. */
  readonly resource: readonly number[];
  readonly failed: readonly boolean[];
  /** How many units a row is; empty for one each. */
  readonly count: readonly number[];
}

export interface Stretch {
  readonly name: string;
  readonly start_ms: number;
  readonly end_ms: number;
}

export interface PathStep extends Stretch {
  readonly id: string;
  /** A node of the DAG that is a group, else -1. */
  readonly group: number;
  readonly parts: Parts;
}

export interface Timeline {
  readonly start_ms: number;
  readonly end_ms: number;
  readonly figure: TimeUnit;
  readonly workers: readonly { readonly name: string; readonly host: string | null }[];
  /** The worker of each lane; those of a worker follow each other. */
  readonly lanes: readonly number[];
  readonly units: Units;
  readonly coarsened: string;
  readonly coordinator: readonly Stretch[];
  /** Stretches that no figure has in it. */
  readonly pauses: readonly Stretch[];
  readonly path: readonly PathStep[];
}

/** How long a group's units took. */
export interface Spread {
  readonly min: number;
  readonly p25: number;
  readonly median: number;
  readonly p75: number;
  readonly max: number;
}

export interface DagNode {
  readonly id: string;
  readonly name: string;
  /** Whether it is a group of units, else the coordinator's, or a transfer. */
  readonly grouped: boolean;
  readonly scope: string | null;
  readonly start_ms: number;
  readonly end_ms: number;
  readonly parts: Parts;
  /** How much of it is on the critical path. */
  readonly path_ms: number;
  readonly units: number;
  readonly spread: Spread | null;
}

export interface Operator {
  readonly scope: string | null;
  /** Its place in the plan, null for time that belongs to none. */
  readonly node_id: number | null;
  readonly name: string;
  readonly detail: string;
  /** Nodes of the DAG. */
  readonly groups: readonly number[];
  readonly basis: string;
  readonly parts: Parts;
}

/** What an operator has of the critical path, in so many of its groups. */
export interface PathOperator {
  readonly name: string;
  readonly groups: number;
  readonly parts: Parts;
}

export interface Dag {
  readonly nodes: readonly DagNode[];
  readonly edges: readonly { readonly from: number; readonly to: number }[];
  readonly scopes: readonly { readonly id: string; readonly kind: string; readonly name: string }[];
  readonly operators: readonly Operator[];
  readonly reduced: string;
}

/** What an index says of a function that decides: shares of resources, in the run's order. */
export interface Label {
  readonly index: string;
  readonly shares: readonly number[];
  readonly confidence: number | null;
  /** The same by its code alone, and by its documentation alone; empty where unknown. */
  readonly code: readonly number[];
  readonly documentation: readonly number[];
}

export interface Flame {
  /** What time goes to: the resources, then waiting, then unknown; `mixed` is none of the time's own. */
  readonly kinds: readonly string[];
  readonly frames: readonly string[];
  readonly labels: ReadonlyMap<number, Label>;
  /** A parent stands before its children; node 0 is the root of all, its frame -1. */
  readonly parent: readonly number[];
  readonly frame: readonly number[];
  readonly operators: readonly string[];
  /** Time that ends in a node, by kind. */
  readonly self: {
    readonly node: readonly number[];
    readonly group: readonly number[];
    readonly operator: readonly number[];
    readonly ms: readonly (readonly number[])[];
  };
  readonly mixedBelow: number;
  readonly why: string;
  readonly coarsened: string;
}

export interface Data {
  readonly version: string;
  readonly title: string;
  readonly figure: TimeUnit;
  readonly resources: readonly Resource[];
  /** Of a resource, `other` or a cause. */
  readonly called: Readonly<Record<string, string>>;
  readonly words: Words;
  readonly runtime_ms: number;
  readonly parts: Parts;
  /** The critical path by operator; empty where its stretches say it. */
  readonly path_operators: readonly PathOperator[];
  readonly said: Said;
  readonly what_if: WhatIf;
  readonly timeline: Timeline;
  readonly dag: Dag;
  readonly flame: Flame | null;
  readonly live: { readonly predict: string } | null;
}
