// The page's data as the views use them: stages by their position among the nodes of the DAG.

import type { TimeUnit } from "./figures.ts";
import type { Basis, Parts, TableText, UsualWhatIf, Words } from "./page_data.ts";

export type { Basis, Parts, UsualWhatIf, Words } from "./page_data.ts";

export interface Resource {
  readonly name: string;
  readonly device: string;
}

export interface Recommendation {
  readonly text: string;
  /** The saving and its basis; may be empty. */
  readonly saving: string;
  readonly lines: readonly string[];
}

export interface FindingText {
  readonly cost: string;
  readonly cost_ms: number;
  readonly text: string;
  readonly basis: Basis;
  readonly advice: string;
}

/** Sentences; empty if they do not apply. */
export interface PageText {
  readonly facts: readonly string[];
  /** How the run ended, and which time the figures leave out. */
  readonly outcome: readonly string[];
  readonly headline: string;
  /** The evidence of the headline. */
  readonly asides: readonly string[];
  readonly recommendations: readonly Recommendation[];
  readonly nothing_to_do: string;
  readonly other: string;
  readonly usual: readonly UsualWhatIf[];
  readonly same: string;
  readonly unknown: readonly string[];
  readonly check: string;
  readonly findings: readonly FindingText[];
  readonly disagreements: readonly string[];
  readonly assumptions: readonly string[];
  readonly missing: readonly string[];
  readonly not_recorded: readonly string[];
  readonly measurements: readonly string[];
  /** The stages of a stream, with how busy each is. */
  readonly stations: TableText;
  readonly next: string;
  /** Short texts on how a what-if's figure is known. */
  readonly how: Readonly<Record<"recorded" | "exact" | "between" | "refused" | "unknown", string>>;
}

/** A prediction of `predict` for one setting. */
export interface Answer {
  readonly predicted_ms: number | null;
  readonly low_ms: number | null;
  readonly high_ms: number | null;
  /** A resource or a cause. */
  readonly bottleneck: string | null;
  readonly path_parts: Parts | null;
  /** ms of each stage, by the DAG's nodes. */
  readonly stages: readonly (number | null)[] | null;
  readonly refused: string | null;
}

export interface Point extends Answer {
  readonly setting: string;
  readonly ratio: number;
  /** The value as text: `4`, `2x`. */
  readonly text: string;
}

export interface Setting {
  readonly key: string;
  readonly label: string;
  /** The recorded amount if amounts are whole numbers, such as slots; else null. */
  readonly counted: number | null;
  /** By ratio; includes the recorded run. */
  readonly points: readonly Point[];
  /** The ratio above which more brings little. */
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
  /** Why fewer settings were predicted; may be empty. */
  readonly coarser: string;
  /** The command to paste; `{settings}` is a placeholder. */
  readonly command: string;
}

/** Columns; a row is a task, or several tasks that are drawn as one bar. */
export interface Tasks {
  readonly lane: readonly number[];
  readonly start: readonly number[];
  readonly length: readonly number[];
  /** A node of the DAG; -1 for stages that the DAG leaves out. */
  readonly stage: readonly number[];
  /** The position of the resource with most of its time; the number of resources for `other`. */
  readonly resource: readonly number[];
  readonly failed: readonly boolean[];
  /** The number of tasks of each row; empty if each row is one task. */
  readonly count: readonly number[];
}

export interface Interval {
  readonly name: string;
  readonly start_ms: number;
  readonly end_ms: number;
}

export interface PathStep extends Interval {
  readonly id: string;
  /** A node of the DAG that is a stage, else -1. */
  readonly stage: number;
  readonly parts: Parts;
}

export interface Timeline {
  readonly start_ms: number;
  readonly end_ms: number;
  readonly figure: TimeUnit;
  readonly workers: readonly { readonly name: string; readonly host: string | null }[];
  /** The worker of each lane; those of a worker follow each other. */
  readonly lanes: readonly number[];
  readonly tasks: Tasks;
  readonly coarsened: string;
  readonly driver: readonly Interval[];
  /** Intervals that the figures leave out. */
  readonly pauses: readonly Interval[];
  readonly path: readonly PathStep[];
}

/** The durations of a stage's tasks, ms. */
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
  /** Whether it is a stage of tasks, not an interval of the driver or a transfer. */
  readonly is_stage: boolean;
  readonly scope: string | null;
  readonly start_ms: number;
  readonly end_ms: number;
  readonly parts: Parts;
  /** Its time on the critical path. */
  readonly path_ms: number;
  readonly tasks: number;
  readonly spread: Spread | null;
}

export interface Operator {
  readonly scope: string | null;
  /** Its number in the plan; null for time of no operator. */
  readonly node_id: number | null;
  readonly name: string;
  readonly detail: string;
  /** Nodes of the DAG. */
  readonly stages: readonly number[];
  readonly basis: string;
  readonly parts: Parts;
}

/** An operator's time on the critical path, and the number of stages that have it. */
export interface PathOperator {
  readonly name: string;
  readonly stages: number;
  readonly parts: Parts;
}

export interface Dag {
  readonly nodes: readonly DagNode[];
  readonly edges: readonly { readonly from: number; readonly to: number }[];
  readonly scopes: readonly { readonly id: string; readonly kind: string; readonly name: string }[];
  readonly operators: readonly Operator[];
  readonly reduced: string;
}

/** An index's label of an attributed function: shares of resources, in the run's order. */
export interface Label {
  readonly index: string;
  readonly shares: readonly number[];
  readonly confidence: number | null;
  /** The shares from its code alone and from its documentation alone; empty if unknown. */
  readonly code: readonly number[];
  readonly documentation: readonly number[];
}

export interface Flame {
  /** Kinds of time: the resources, then waiting, then unknown.  `mixed` is only a colour. */
  readonly kinds: readonly string[];
  readonly frames: readonly string[];
  readonly labels: ReadonlyMap<number, Label>;
  /** A parent comes before its children; node 0 is the root, with frame -1. */
  readonly parent: readonly number[];
  readonly frame: readonly number[];
  readonly operators: readonly string[];
  /** Time that ends in a node, by kind. */
  readonly self: {
    readonly node: readonly number[];
    readonly stage: readonly number[];
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
  /** Display names of resources, `other` and causes. */
  readonly called: Readonly<Record<string, string>>;
  readonly words: Words;
  readonly runtime_ms: number;
  readonly parts: Parts;
  /** The critical path by operator; empty if its segments show it already. */
  readonly path_operators: readonly PathOperator[];
  readonly page_text: PageText;
  readonly what_if: WhatIf;
  readonly timeline: Timeline;
  readonly dag: Dag;
  readonly flame: Flame | null;
  readonly live: { readonly predict: string } | null;
}
