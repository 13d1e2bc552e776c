// The context of all views: the data, the format of figures, the selection.

import type { Data, Parts } from "./data.ts";
import type { Figures } from "./figures.ts";
import type { Store } from "./store.ts";

export interface Context {
  readonly data: Data;
  readonly figures: Figures;
  readonly store: Store;
}

export const OTHER = "other";

/** The names of parts in the order in which they are drawn. */
export function partNames(context: Context): string[] {
  return [...context.data.resources.map((each) => each.name), OTHER];
}

export function sum(parts: Parts): number {
  return Object.values(parts).reduce((total, each) => total + each, 0);
}
