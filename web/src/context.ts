// The context of all views: the data, the format of figures, the selection.

import type { DagNode, Data, Parts, Resource, Timeline, Words } from "./data.ts";
import type { Figures } from "./figures.ts";
import type { Store } from "./store.ts";

/** The data of a timeline: of a run's page, or of one side of a comparison. */
export interface TimelineContext {
  readonly data: {
    readonly resources: readonly Resource[];
    readonly called: Readonly<Record<string, string>>;
    readonly words: Words;
    readonly timeline: Timeline;
    readonly dag: { readonly nodes: readonly Pick<DagNode, "id" | "name">[] };
  };
  readonly figures: Figures;
  readonly store: Store;
}

export interface Context {
  readonly data: Data;
  readonly figures: Figures;
  readonly store: Store;
}

export const OTHER = "other";

/** The names of parts in the order in which they are drawn. */
export function partNames(context: { readonly data: { readonly resources: readonly Resource[] } }): string[] {
  return [...context.data.resources.map((each) => each.name), OTHER];
}

export function sum(parts: Parts): number {
  return Object.values(parts).reduce((total, each) => total + each, 0);
}
