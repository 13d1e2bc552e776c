// Converts the page's data from their JSON form to the form that the views use.

import type { Answer, Dag, Data, Flame, Interval, PathStep, Point, Setting, Timeline, WhatIf } from "./data.ts";
import type { PageData, PagePoint } from "./page_data.ts";

const SCHEMA = "crystalperf.page/2";

/** The data of the page.  Throws an error if their version is not that of the script. */
export function reading(text: string): Data {
  const page = JSON.parse(text) as PageData;
  if (page.schema !== SCHEMA)
    throw new Error(`the page's data have the schema ${page.schema}, but its script reads ${SCHEMA}`);
  const { page_text, verdict, graph, what_if } = page;
  const names = Object.keys(page_text.devices);
  const place = new Map(graph.nodes.map((each, index) => [each.id, index]));
  const stage = (id: string): number => place.get(id) ?? -1;
  return {
    version: page.version,
    title: page_text.title,
    figure: page_text.figure,
    resources: names.slice(0, -1).map((name) => ({ name, device: page_text.devices[name] ?? name })),
    called: { ...page_text.causes, ...page_text.devices },
    words: page_text.words,
    runtime_ms: verdict.debug.runtime_ms,
    parts: verdict.debug.resource_ms,
    path_operators: verdict.debug.path_operators.map(({ name, stages, resource_ms }) => ({
      name,
      stages,
      parts: resource_ms,
    })),
    page_text: {
      ...page_text,
      outcome: [...page_text.outcome, page_text.left_out].filter(Boolean),
      asides: [page_text.unmodelled, page_text.rests_on].filter(Boolean),
      usual: page_text.what_ifs,
      findings: page_text.findings.map((each, index) => ({
        ...each,
        cost_ms: verdict.debug.findings[index]?.cost_ms ?? 0,
      })),
    },
    what_if: whatIf(what_if, verdict.run, graph.nodes.length, stage),
    timeline: timeline(page, stage),
    dag: dag(page, stage),
    flame: page.flames && flame(page.flames, names.slice(0, -1), page.timeline.stages.map(stage)),
    live: page.live ?? null,
  };
}

function whatIf(grid: PageData["what_if"], run: string, nodes: number, stage: (id: string) => number): WhatIf {
  const places = grid.stages.map(stage);
  const byNode = (lengths: readonly (number | null)[]): (number | null)[] => {
    const found = new Array<number | null>(nodes).fill(null);
    places.forEach((place, index) => {
      if (place >= 0) found[place] = lengths[index] ?? null;
    });
    return found;
  };
  const answer = (point: PagePoint): Answer => ({
    predicted_ms: point.predicted_ms,
    low_ms: point.interval_ms?.[0] ?? null,
    high_ms: point.interval_ms?.[1] ?? null,
    bottleneck: point.bottleneck,
    path_parts: Object.keys(point.resource_ms).length ? point.resource_ms : null,
    stages: point.stage_ms.length ? byNode(point.stage_ms) : null,
    refused: point.predicted_ms === null ? point.refused : null,
  });
  const base: Answer = {
    predicted_ms: grid.recorded_ms,
    low_ms: null,
    high_ms: null,
    bottleneck: grid.bottleneck,
    path_parts: grid.resource_ms,
    stages: byNode(grid.stage_ms),
    refused: null,
  };
  const settings = grid.curves.map((curve): Setting => {
    const counted = curve.unit === "count" ? curve.recorded : null;
    const text = (ratio: number): string => (counted === null ? `${ratio}x` : String(counted * ratio));
    const points = curve.points.map((each): Point => {
      const ratio = each.ratios[0] ?? 1;
      return { ...answer(each), setting: each.setting, ratio, text: text(ratio) };
    });
    const recorded: Point = { ...base, setting: "", ratio: 1, text: text(1) };
    return {
      key: curve.key,
      label: curve.label,
      counted,
      points: [...points, recorded].sort((a, b) => a.ratio - b.ratio),
      knee: curve.knee === null ? null : (curve.points[curve.knee]?.ratios[0] ?? null),
      knee_text: curve.knee_text,
    };
  });
  return {
    base_ms: grid.recorded_ms,
    base,
    settings,
    pairs: grid.pairs.map(({ keys, points }) => ({
      keys,
      points: points.map((each) => ({ ...answer(each), ratios: [each.ratios[0] ?? 1, each.ratios[1] ?? 1] })),
    })),
    coarser: grid.coarser,
    command: grid.command.replace("{run}", () => run),
  };
}

function timeline(page: PageData, stage: (id: string) => number): Timeline {
  const { timeline: found, verdict, graph } = page;
  const stageOnly = (id: string): number => (graph.nodes[stage(id)]?.kind === "stage" ? stage(id) : -1);
  // The critical path of a stream is that of one record, which has no position in time.
  const path = (verdict.debug.stream ? [] : verdict.debug.critical_path).map(
    (each): PathStep => ({ ...each, stage: stageOnly(each.id), parts: each.resource_ms }),
  );
  return timelineOf(found, found.stages.map(stage), path);
}

/** A timeline with its path; `places` are the nodes of its stages. */
export function timelineOf(
  found: PageData["timeline"],
  places: readonly number[],
  path: readonly PathStep[],
): Timeline {
  const succeeded = found.statuses.indexOf("succeeded");
  return {
    start_ms: found.start_ms,
    end_ms: found.end_ms,
    figure: found.figure,
    workers: found.workers.id.map((name, index) => ({ name, host: found.workers.host[index] ?? null })),
    lanes: found.lanes,
    tasks: {
      lane: found.tasks.lane,
      start: found.tasks.start_ms,
      length: found.tasks.length_ms,
      stage: found.tasks.stage.map((each) => places[each] ?? -1),
      resource: found.tasks.resource,
      failed: found.tasks.status.map((each) => each !== succeeded),
      count: found.tasks.count,
    },
    coarsened: found.coarsened,
    driver: intervals(found.driver),
    pauses: intervals(found.pauses),
    path,
  };
}

function intervals(columns: PageData["timeline"]["pauses"]): Interval[] {
  return columns.name.map((name, index) => ({
    name,
    start_ms: columns.start_ms[index] ?? 0,
    end_ms: columns.end_ms[index] ?? 0,
  }));
}

function dag({ graph, verdict }: PageData, stage: (id: string) => number): Dag {
  const { operators } = verdict.debug;
  const details = new Map(graph.operators.map((each) => [`${each.scope} ${each.node_id}`, each.detail]));
  const at = (quantile: number): number => graph.quantiles.indexOf(quantile);
  const [min, p25, median, p75, max] = [at(0), at(0.25), at(0.5), at(0.75), at(1)];
  return {
    nodes: graph.nodes.map((node) => {
      const lengths = node.spread?.duration_ms;
      const value = (index: number): number => lengths?.[index] ?? 0;
      return {
        ...node,
        is_stage: node.kind === "stage",
        parts: node.resource_ms,
        spread: lengths
          ? { min: value(min), p25: value(p25), median: value(median), p75: value(p75), max: value(max) }
          : null,
      };
    }),
    edges: graph.source.map((from, index) => ({ from, to: graph.target[index] ?? from })),
    scopes: graph.scopes,
    operators: operators.map((each) => ({
      ...each,
      detail: details.get(`${each.scope} ${each.node_id}`) ?? each.name,
      stages: each.stages.map(stage).filter((node) => node >= 0),
      parts: each.resource_ms,
    })),
    reduced: graph.reduced,
  };
}

function flame(found: NonNullable<PageData["flames"]>, resources: readonly string[], stages: readonly number[]): Flame {
  const { sampled, labels } = found;
  const known = labels.frame.map((frame, row) => {
    const label = {
      index: labels.index[row] ?? "",
      shares: labels.shares[row] ?? [],
      confidence: labels.confidence[row] ?? null,
      code: labels.code[row] ?? [],
      documentation: labels.documentation[row] ?? [],
    };
    return [frame, label] as const;
  });
  return {
    kinds: [...resources, "waiting", "unknown"],
    frames: found.frames,
    labels: new Map(known),
    parent: found.parent,
    frame: found.frame,
    operators: found.operators,
    self: {
      node: sampled.node,
      stage: sampled.stage.map((each) => stages[each] ?? -1),
      operator: sampled.operator,
      ms: [...resources.map((name) => sampled.resource_ms[name] ?? []), sampled.waiting_ms, sampled.unknown_ms],
    },
    mixedBelow: found.mixed_below_share,
    why: found.why,
    coarsened: found.coarsened,
  };
}
