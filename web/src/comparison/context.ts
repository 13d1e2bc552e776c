// The context of the views of a comparison: its data, the format of figures, the selection.

import type { TimelineContext } from "../context.ts";
import type { PathStep, Resource } from "../data.ts";
import { Figures } from "../figures.ts";
import { timelineOf } from "../reading.ts";
import { Store } from "../store.ts";
import type { ComparedStage, ComparisonPage, PageSide } from "./page_data.ts";

const SCHEMA = "crystalperf.comparison-page/2";

export interface ComparisonContext {
  readonly page: ComparisonPage;
  readonly figures: Figures;
  /** Its nodes are the rows of comparison.stages; times begin at 0 on both sides. */
  readonly store: Store;
  readonly resources: readonly Resource[];
  readonly sides: readonly [TimelineContext, TimelineContext];
}

/** The context of a page's data.  Throws an error if their version is not that of the script. */
export function contextOf(text: string): ComparisonContext {
  const page = JSON.parse(text) as ComparisonPage;
  if (page.schema !== SCHEMA)
    throw new Error(`the page's data have the schema ${page.schema}, but its script reads ${SCHEMA}`);
  const names = Object.keys(page.page_text.devices);
  const resources = names.slice(0, -1).map((name) => ({ name, device: page.page_text.devices[name] ?? name }));
  const figures = new Figures(page.page_text.figure);
  const length = Math.max(1, ...[page.before, page.after].map(({ timeline }) => timeline.end_ms - timeline.start_ms));
  const store = new Store([0, length]);
  const side = (of: "before" | "after"): TimelineContext => ({
    data: {
      resources,
      called: { ...page.page_text.causes, ...page.page_text.devices },
      words: page.page_text.words,
      timeline: sideTimeline(page[of]),
      dag: { nodes: page.comparison.stages.map((each) => ({ id: each[of] ?? "", name: each.name })) },
    },
    figures,
    store,
  });
  return { page, figures, store, resources, sides: [side("before"), side("after")] };
}

/** The timeline of a side with times from 0 on, and stages as rows of the compared stages. */
function sideTimeline({ timeline, path, row }: PageSide): TimelineContext["data"]["timeline"] {
  const { start_ms } = timeline;
  const place = new Map(timeline.stages.map((id, index) => [id, row[index] ?? -1]));
  const found = timelineOf(
    timeline,
    timeline.stages.map((_, index) => row[index] ?? -1),
    path.map((each): PathStep => ({ ...each, stage: place.get(each.id) ?? -1, parts: each.resource_ms })),
  );
  const earlier = <T extends { start_ms: number; end_ms: number }>(each: T): T => ({
    ...each,
    start_ms: each.start_ms - start_ms,
    end_ms: each.end_ms - start_ms,
  });
  return {
    ...found,
    start_ms: 0,
    end_ms: timeline.end_ms - start_ms,
    tasks: { ...found.tasks, start: found.tasks.start.map((each) => each - start_ms) },
    driver: found.driver.map(earlier),
    pauses: found.pauses.map(earlier),
    path: found.path.map(earlier),
  };
}

/** The ids of a stage on both sides: one if they are equal. */
export function stageLabel({ before, after }: ComparedStage): string {
  if (before === null || after === null) return before ?? after ?? "";
  return before === after ? before : `${before} → ${after}`;
}
