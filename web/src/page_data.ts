// The page's data as JSON (docs/schema/page.json; query/results/page.py describes each field).

/** ms by resource, and `other`. */
export type Parts = Readonly<Record<string, number>>;

export type Basis = "measured" | "modelled" | "guessed";

export interface PageData {
  readonly schema: "crystalperf.page/2";
  readonly version: string;
  readonly page_text: {
    readonly title: string;
    readonly facts: readonly string[];
    readonly outcome: readonly string[];
    readonly left_out: string;
    readonly headline: string;
    readonly unmodelled: string;
    readonly rests_on: string;
    readonly recommendations: readonly {
      readonly text: string;
      readonly saving: string;
      readonly lines: readonly string[];
    }[];
    readonly nothing_to_do: string;
    readonly other: string;
    readonly what_ifs: readonly UsualWhatIf[];
    readonly same: string;
    readonly unknown: readonly string[];
    readonly check: string;
    readonly findings: readonly {
      readonly cost: string;
      readonly text: string;
      readonly basis: Basis;
      readonly advice: string;
    }[];
    readonly disagreements: readonly string[];
    readonly assumptions: readonly string[];
    readonly missing: readonly string[];
    readonly not_recorded: readonly string[];
    readonly measurements: readonly string[];
    readonly stations: TableText;
    readonly next: string;
    readonly figure: { readonly name: string; readonly ms: number; readonly decimals: number };
    readonly words: Words;
    /** By resource, in the run's order, `other` last. */
    readonly devices: Readonly<Record<string, string>>;
    readonly causes: Readonly<Record<string, string>>;
    readonly how: Readonly<Record<"recorded" | "exact" | "between" | "refused" | "unknown", string>>;
  };
  readonly verdict: {
    readonly run: string;
    readonly debug: {
      readonly stream: object | null;
      readonly runtime_ms: number;
      readonly resource_ms: Parts;
      readonly critical_path: readonly {
        readonly id: string;
        readonly name: string;
        readonly start_ms: number;
        readonly end_ms: number;
        readonly resource_ms: Parts;
      }[];
      readonly path_operators: readonly {
        readonly name: string;
        readonly stages: number;
        readonly resource_ms: Parts;
      }[];
      readonly findings: readonly { readonly cost_ms: number }[];
      readonly operators: readonly {
        readonly scope: string | null;
        readonly node_id: number | null;
        readonly name: string;
        readonly stages: readonly string[];
        readonly basis: string;
        readonly resource_ms: Parts;
      }[];
    };
  };
  readonly what_if: {
    readonly recorded_ms: number;
    readonly bottleneck: string;
    readonly resource_ms: Parts;
    readonly stages: readonly string[];
    readonly stage_ms: readonly number[];
    readonly curves: readonly {
      readonly key: string;
      readonly label: string;
      readonly unit: string;
      readonly recorded: number | null;
      readonly points: readonly PagePoint[];
      readonly knee: number | null;
      readonly knee_text: string;
    }[];
    readonly pairs: readonly { readonly keys: readonly [string, string]; readonly points: readonly PagePoint[] }[];
    readonly coarser: string;
    readonly command: string;
  };
  readonly timeline: {
    readonly start_ms: number;
    readonly end_ms: number;
    readonly figure: { readonly name: string; readonly ms: number; readonly decimals: number };
    readonly workers: {
      readonly id: readonly string[];
      readonly host: readonly (string | null)[];
      readonly start_ms: readonly number[];
      readonly end_ms: readonly (number | null)[];
      readonly reason: readonly (string | null)[];
    };
    readonly lanes: readonly number[];
    readonly stages: readonly string[];
    readonly stage_names: readonly string[];
    readonly statuses: readonly string[];
    readonly tasks: {
      readonly lane: readonly number[];
      readonly start_ms: readonly number[];
      readonly length_ms: readonly number[];
      readonly stage: readonly number[];
      readonly status: readonly number[];
      readonly resource: readonly number[];
      readonly count: readonly number[];
    };
    readonly driver: Intervals;
    readonly pauses: Intervals;
    readonly coarsened: string;
  };
  readonly graph: {
    readonly nodes: readonly {
      readonly id: string;
      readonly kind: "stage" | "driver" | "transfer";
      readonly name: string;
      readonly scope: string | null;
      readonly start_ms: number;
      readonly end_ms: number;
      readonly path_ms: number;
      readonly resource_ms: Parts;
      readonly tasks: number;
      readonly spread: { readonly duration_ms: readonly number[] } | null;
    }[];
    readonly source: readonly number[];
    readonly target: readonly number[];
    readonly edge_kind: readonly string[];
    readonly scopes: readonly { readonly id: string; readonly kind: string; readonly name: string }[];
    readonly operators: readonly { readonly scope: string; readonly node_id: number; readonly detail: string }[];
    readonly quantiles: readonly number[];
    readonly reduced: string;
  };
  readonly flames: {
    readonly frames: readonly string[];
    readonly parent: readonly number[];
    readonly frame: readonly number[];
    readonly operators: readonly string[];
    readonly sampled: {
      readonly node: readonly number[];
      readonly stage: readonly number[];
      readonly operator: readonly number[];
      readonly resource_ms: Readonly<Record<string, readonly number[]>>;
      readonly waiting_ms: readonly number[];
      readonly unknown_ms: readonly number[];
    };
    readonly labels: {
      readonly frame: readonly number[];
      readonly index: readonly string[];
      readonly shares: readonly (readonly number[])[];
      readonly confidence: readonly (number | null)[];
      readonly code: readonly (readonly number[])[];
      readonly documentation: readonly (readonly number[])[];
    };
    readonly mixed_below_share: number;
    readonly why: string;
    readonly coarsened: string;
  } | null;
  readonly live?: { readonly predict: string } | null;
}

/** A table of texts; the first two columns are an id and a name. */
export interface TableText {
  readonly heads: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** The meaning of the columns. */
  readonly note: string;
}

/** The words of the run's framework. */
export interface Words {
  readonly worker: string;
  readonly workers: string;
  readonly slot: string;
  readonly slots: string;
  readonly stage: string;
  readonly stages: string;
  readonly task: string;
  readonly tasks: string;
  readonly driver: string;
  readonly scope: string;
}

/** One of the usual what-ifs, with the terminal's figures. */
export interface UsualWhatIf {
  readonly question: string;
  readonly setting: string;
  readonly runtime: string;
  readonly change: string;
  readonly range: string;
}

export interface PagePoint {
  readonly setting: string;
  readonly ratios: readonly number[];
  readonly amounts: readonly (number | null)[];
  readonly predicted_ms: number | null;
  readonly interval_ms: readonly [number, number] | null;
  readonly refused: string;
  readonly bottleneck: string | null;
  readonly resource_ms: Parts;
  readonly stage_ms: readonly (number | null)[];
}

interface Intervals {
  readonly id: readonly string[];
  readonly name: readonly string[];
  readonly start_ms: readonly number[];
  readonly end_ms: readonly number[];
}
