// Converts the page's data from their JSON form to the form that the views use.

import type { Answer, Dag, Data, Flame, PathStep, Point, Setting, Stretch, Timeline, WhatIf } from "./data.ts";
import type { Picture, PicturePoint } from "./picture.ts";

const SCHEMA = "crystalperf.picture/1";

/** The data of the page.  Throws an error if their version is not that of the script. */
export function reading(text: string): Data {
  const picture = JSON.parse(text) as Picture;
  if (picture.schema !== SCHEMA)
    throw new Error(`the page's data have the schema ${picture.schema}, but its script reads ${SCHEMA}`);
  const { said, verdict, graph, what_if } = picture;
  const names = Object.keys(said.devices);
  const place = new Map(graph.nodes.map((each, index) => [each.id, index]));
  const group = (id: string): number => place.get(id) ?? -1;
  return {
    version: picture.version,
    title: said.title,
    figure: said.figure,
    resources: names.slice(0, -1).map((name) => ({ name, device: said.devices[name] ?? name })),
    called: { ...said.causes, ...said.devices },
    words: said.words,
    runtime_ms: verdict.debug.runtime_ms,
    parts: verdict.debug.resource_ms,
    path_operators: verdict.debug.path_operators.map(({ name, groups, resource_ms }) => ({
      name,
      groups,
      parts: resource_ms,
    })),
    said: {
      ...said,
      outcome: [...said.outcome, said.left_out].filter(Boolean),
      asides: [said.unmodelled, said.rests_on].filter(Boolean),
      usual: said.what_ifs,
      findings: said.findings.map((each, index) => ({
        ...each,
        cost_ms: verdict.debug.findings[index]?.cost_ms ?? 0,
      })),
      unseen: [...said.missing, ...said.unseen],
    },
    what_if: whatIf(what_if, verdict.run, graph.nodes.length, group),
    timeline: timeline(picture, group),
    dag: dag(picture, group),
    flame: picture.flames && flame(picture.flames, names.slice(0, -1), picture.timeline.groups.map(group)),
    live: picture.live ?? null,
  };
}

function whatIf(grid: Picture["what_if"], run: string, nodes: number, group: (id: string) => number): WhatIf {
  const places = grid.groups.map(group);
  const byNode = (lengths: readonly (number | null)[]): (number | null)[] => {
    const found = new Array<number | null>(nodes).fill(null);
    places.forEach((place, index) => {
      if (place >= 0) found[place] = lengths[index] ?? null;
    });
    return found;
  };
  const answer = (point: PicturePoint): Answer => ({
    predicted_ms: point.predicted_ms,
    low_ms: point.interval_ms?.[0] ?? null,
    high_ms: point.interval_ms?.[1] ?? null,
    bottleneck: point.bottleneck,
    path_parts: Object.keys(point.resource_ms).length ? point.resource_ms : null,
    groups: point.group_ms.length ? byNode(point.group_ms) : null,
    refused: point.predicted_ms === null ? point.refused : null,
  });
  const base: Answer = {
    predicted_ms: grid.recorded_ms,
    low_ms: null,
    high_ms: null,
    bottleneck: grid.bottleneck,
    path_parts: grid.resource_ms,
    groups: byNode(grid.group_ms),
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
      knee_text: curve.knee_said,
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

function timeline(picture: Picture, group: (id: string) => number): Timeline {
  const { timeline: found, verdict, graph } = picture;
  const places = found.groups.map(group);
  const grouped = (id: string): number => (graph.nodes[group(id)]?.kind === "group" ? group(id) : -1);
  const succeeded = found.statuses.indexOf("succeeded");
  return {
    start_ms: found.start_ms,
    end_ms: found.end_ms,
    figure: found.figure,
    workers: found.workers.id.map((name, index) => ({ name, host: found.workers.host[index] ?? null })),
    lanes: found.lanes,
    units: {
      lane: found.units.lane,
      start: found.units.start_ms,
      length: found.units.length_ms,
      group: found.units.group.map((each) => places[each] ?? -1),
      resource: found.units.resource,
      failed: found.units.status.map((each) => each !== succeeded),
      count: found.units.count,
    },
    coarsened: found.coarsened,
    coordinator: stretches(found.coordinator),
    pauses: stretches(found.pauses),
    // The critical path of a stream is that of one record, which has no position in time.
    path: (verdict.debug.flow ? [] : verdict.debug.critical_path).map(
      (each): PathStep => ({ ...each, group: grouped(each.id), parts: each.resource_ms }),
    ),
  };
}

function stretches(columns: Picture["timeline"]["pauses"]): Stretch[] {
  return columns.name.map((name, index) => ({
    name,
    start_ms: columns.start_ms[index] ?? 0,
    end_ms: columns.end_ms[index] ?? 0,
  }));
}

function dag({ graph, verdict }: Picture, group: (id: string) => number): Dag {
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
        grouped: node.kind === "group",
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
      groups: each.groups.map(group).filter((node) => node >= 0),
      parts: each.resource_ms,
    })),
    reduced: graph.reduced,
  };
}

function flame(found: NonNullable<Picture["flames"]>, resources: readonly string[], groups: readonly number[]): Flame {
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
      group: sampled.group.map((each) => groups[each] ?? -1),
      operator: sampled.operator,
      ms: [...resources.map((name) => sampled.resource_ms[name] ?? []), sampled.waiting_ms, sampled.unknown_ms],
    },
    mixedBelow: found.mixed_below_share,
    why: found.why,
    coarsened: found.coarsened,
  };
}
