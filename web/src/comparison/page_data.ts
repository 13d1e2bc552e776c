// The data of a comparison's page as JSON (docs/schema/comparison-page.json; query/results/comparison_page.py).

import type { Basis, PageData, Parts, TableText, Words } from "../page_data.ts";

export interface ComparisonPage {
  readonly schema: "crystalperf.comparison-page/2";
  readonly version: string;
  readonly page_text: ComparisonText;
  readonly comparison: {
    readonly change_ms: number;
    readonly before: { readonly runtime_ms: number };
    readonly after: { readonly runtime_ms: number };
    readonly stages: readonly ComparedStage[];
  };
  readonly before: PageSide;
  readonly after: PageSide;
  readonly flames: PageFlames | null;
}

export interface ComparisonText {
  readonly title: string;
  readonly headline: string;
  /** The range, and its basis; what the comparison leaves out. */
  readonly sentences: readonly string[];
  readonly warnings: readonly string[];
  readonly parts: readonly PartText[];
  /** The sentence in place of parts, if there are none. */
  readonly no_parts: string;
  readonly predicted: readonly string[];
  readonly settings: TableText;
  readonly operators: TableText;
  /** Why there is no flame graph; may be empty. */
  readonly no_flames: string;
  readonly figure: { readonly name: string; readonly ms: number; readonly decimals: number };
  readonly words: Words;
  readonly devices: Readonly<Record<string, string>>;
  readonly causes: Readonly<Record<string, string>>;
}

export interface PartText {
  readonly ms: number;
  readonly text: string;
  /** Null for the unexplained rest. */
  readonly basis: Basis | null;
  /** The stages that it comes from, the largest change first. */
  readonly stages: readonly string[];
}

export interface ComparedStage {
  readonly before: string | null;
  readonly after: string | null;
  readonly name: string;
  readonly before_ms: number;
  readonly after_ms: number;
  readonly before_resource_ms: Parts;
  readonly after_resource_ms: Parts;
}

/** One run of a side: the only one, or the one with the median runtime. */
export interface PageSide {
  readonly name: string;
  readonly facts: readonly string[];
  readonly resource_ms: Parts;
  readonly timeline: PageData["timeline"];
  readonly path: PageData["verdict"]["debug"]["critical_path"];
  /** The row of comparison.stages of each stage of the timeline; -1 for none. */
  readonly row: readonly number[];
}

export interface PageFlames {
  readonly frames: readonly string[];
  readonly parent: readonly number[];
  readonly frame: readonly number[];
  readonly sampled: {
    readonly node: readonly number[];
    readonly before_ms: Readonly<Record<string, readonly number[]>>;
    readonly after_ms: Readonly<Record<string, readonly number[]>>;
    readonly variance_ms2: readonly number[];
  };
  readonly runs: readonly [number, number];
  readonly total_ms: readonly [number, number];
  readonly noise_deviations: number;
  readonly functions: readonly FunctionChange[];
  readonly coarsened: string;
}

export interface FunctionChange {
  readonly name: string;
  readonly kind: string;
  readonly before_ms: number;
  readonly after_ms: number;
  readonly change_ms: number;
  readonly noise_ms: number;
  readonly beyond_noise: boolean;
}
