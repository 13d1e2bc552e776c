// The page's predictions for settings: those of `predict`, interpolation between two of them, or none.
// Only Python has the model itself.

import type { Answer, Pair, Parts, Point, Setting, WhatIf } from "../data.ts";

/** The chosen ratio of each setting that is not as recorded, by key. */
export type Chosen = ReadonlyMap<string, number>;

export type How = "recorded" | "exact" | "between" | "refused" | "unknown";

export interface Reading {
  readonly how: How;
  /** Null only if nothing is known. */
  readonly answer: Answer | null;
  /** Settings as `--set` takes them. */
  readonly settings: readonly string[];
}

const SAME = 1e-6;

const same = (a: number, b: number): boolean => Math.abs(Math.log(a / b)) < SAME;

/** The prediction for a combination of settings, and how it is known. */
export function read(whatIf: WhatIf, chosen: Chosen): Reading {
  const moved = whatIf.settings.filter((each) => !same(chosen.get(each.key) ?? 1, 1));
  const settings = moved.map((each) => settingText(each, chosen.get(each.key) ?? 1));
  const [first, second] = moved;
  if (!first) return { how: "recorded", answer: whatIf.base, settings };
  if (!second) return { ...along(first.points, chosen.get(first.key) ?? 1), settings };
  if (moved.length > 2) return { how: "unknown", answer: null, settings };
  const pair = whatIf.pairs.find((each) => each.keys.includes(first.key) && each.keys.includes(second.key));
  return { ...(pair ? within(whatIf, pair, chosen) : UNKNOWN), settings };
}

const UNKNOWN = { how: "unknown", answer: null } as const;

/** A setting as `--set` takes it: as in the grid if the grid has this point. */
export function settingText(setting: Setting, ratio: number): string {
  const point = setting.points.find((each) => same(each.ratio, ratio));
  return point?.setting || `${setting.key}=${amountText(setting, ratio)}`;
}

/** The amount at a ratio, as text: `4`, `2x`. */
export function amountText(setting: Setting, ratio: number): string {
  const point = setting.points.find((each) => same(each.ratio, ratio));
  if (point) return point.text;
  if (setting.counted) return String(Math.round(setting.counted * ratio));
  return `${Number(ratio.toPrecision(3))}x`;
}

/** The ratios where a slider stops: the grid's, and between them eighths of a factor of two, or whole amounts. */
export function stops(setting: Setting): number[] {
  const grid = setting.points.map((each) => each.ratio);
  const between: number[] = [];
  for (let index = 0; index + 1 < grid.length; index += 1) {
    const [low, high] = [grid[index]!, grid[index + 1]!];
    const recorded = setting.counted;
    if (recorded) {
      const [from, to] = [Math.round(low * recorded) + 1, Math.round(high * recorded) - 1];
      const step = Math.max(1, Math.ceil((to - from) / 16));
      for (let amount = from; amount <= to; amount += step) between.push(amount / recorded);
    } else {
      const steps = Math.round(8 * Math.log2(high / low));
      for (let step = 1; step < steps; step += 1)
        between.push(Number((low * (high / low) ** (step / steps)).toPrecision(3)));
    }
  }
  const all = [...grid, ...between.filter((each) => !grid.some((known) => same(known, each)))];
  return all.sort((a, b) => a - b);
}

function exactly(answer: Answer): Pick<Reading, "how" | "answer"> {
  return { how: answer.refused === null ? "exact" : "refused", answer };
}

/** For one setting: the grid's prediction, or interpolation between two that are not refused. */
function along(points: readonly Point[], ratio: number): Pick<Reading, "how" | "answer"> {
  const at = points.find((each) => same(each.ratio, ratio));
  if (at) return exactly(at);
  const above = points.findIndex((each) => each.ratio > ratio);
  const [low, high] = [points[above - 1], points[above]];
  if (!low || !high) return UNKNOWN;
  const refused = [low, high].find((each) => each.refused !== null);
  if (refused) return { how: "refused", answer: refused };
  const share = Math.log(ratio / low.ratio) / Math.log(high.ratio / low.ratio);
  return { how: "between", answer: between(low, high, share) };
}

/** For a pair of settings: the grid's prediction, or interpolation between four of them. */
function within(whatIf: WhatIf, pair: Pair, chosen: Chosen): Pick<Reading, "how" | "answer"> {
  const [x, y] = pair.keys.map((key) => chosen.get(key) ?? 1) as [number, number];
  const corner = (a: number, b: number): Answer | null =>
    pair.points.find((each) => same(each.ratios[0], a) && same(each.ratios[1], b)) ?? edge(whatIf, pair, a, b);
  const at = corner(x, y);
  if (at) return exactly(at);
  const [xs, ys] = [around(axis(pair, 0), x), around(axis(pair, 1), y)];
  if (!xs || !ys) return UNKNOWN;
  const corners = [corner(xs[0], ys[0]), corner(xs[1], ys[0]), corner(xs[0], ys[1]), corner(xs[1], ys[1])];
  if (corners.some((each) => each === null)) return UNKNOWN;
  const refused = corners.find((each) => each!.refused !== null);
  if (refused) return { how: "refused", answer: refused };
  const [a, b, c, d] = corners as [Answer, Answer, Answer, Answer];
  const [right, up] = [share(xs, x), share(ys, y)];
  return { how: "between", answer: between(between(a, b, right), between(c, d, right), up) };
}

/** A point of a pair at which one setting is as recorded: the prediction for the other one alone. */
function edge(whatIf: WhatIf, pair: Pair, a: number, b: number): Answer | null {
  if (same(a, 1) && same(b, 1)) return whatIf.base;
  if (!same(a, 1) && !same(b, 1)) return null;
  const [key, ratio] = same(b, 1) ? [pair.keys[0], a] : [pair.keys[1], b];
  const points = whatIf.settings.find((each) => each.key === key)?.points ?? [];
  return points.find((each) => same(each.ratio, ratio)) ?? null;
}

function axis(pair: Pair, place: 0 | 1): number[] {
  return [...new Set([1, ...pair.points.map((each) => each.ratios[place])])].sort((a, b) => a - b);
}

/** The two values of an axis around a value; twice the same if the axis has that value. */
function around(values: readonly number[], value: number): [number, number] | null {
  const at = values.find((each) => same(each, value));
  if (at !== undefined) return [at, at];
  const above = values.findIndex((each) => each > value);
  const [low, high] = [values[above - 1], values[above]];
  return low === undefined || high === undefined ? null : [low, high];
}

function share([low, high]: readonly [number, number], value: number): number {
  return same(low, high) ? 0 : Math.log(value / low) / Math.log(high / low);
}

/** Interpolates times between two predictions on logarithmic scales, because effects of resources are ratios. */
function between(low: Answer, high: Answer, at: number): Answer {
  const mix = (a: number | null | undefined, b: number | null | undefined): number | null => {
    if (a === null || b === null || a === undefined || b === undefined) return null;
    return a > 0 && b > 0 ? Math.exp((1 - at) * Math.log(a) + at * Math.log(b)) : (1 - at) * a + at * b;
  };
  const predicted_ms = mix(low.predicted_ms, high.predicted_ms);
  // A range is a factor; the recorded run has no range, so it takes that of its neighbour.
  const width = (of: Answer, end: "low_ms" | "high_ms"): number | null => {
    const known = [of, low, high].find((each) => each[end] !== null && each.predicted_ms);
    return known ? known[end]! / known.predicted_ms! : null;
  };
  const scaled = (factor: number | null): number | null =>
    factor === null || predicted_ms === null ? null : factor * predicted_ms;
  const parts = mixedParts(low.path_parts, high.path_parts, at);
  return {
    predicted_ms,
    low_ms: scaled(mix(width(low, "low_ms"), width(high, "low_ms"))),
    high_ms: scaled(mix(width(low, "high_ms"), width(high, "high_ms"))),
    bottleneck: at < 0.5 ? low.bottleneck : high.bottleneck,
    path_parts: parts,
    stages: low.stages && high.stages ? low.stages.map((each, index) => mix(each, high.stages?.[index])) : null,
    refused: null,
  };
}

function mixedParts(low: Parts | null, high: Parts | null, at: number): Parts | null {
  if (!low || !high) return null;
  return Object.fromEntries(
    Object.entries(low).map(([name, value]) => [name, (1 - at) * value + at * (high[name] ?? 0)]),
  );
}

/** The command that predicts exactly these settings. */
export function command(whatIf: WhatIf, settings: readonly string[]): string {
  return whatIf.command.replace("{settings}", () => settings.join(" --set "));
}
