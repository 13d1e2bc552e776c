// Tasks as rows of a picture, sorted by start: one row per lane, or per worker if there are too many lanes.

import type { PathStep, Timeline } from "../data.ts";

export interface Rows {
  /** The first task of each row, and at the end the number of tasks. */
  readonly first: Int32Array;
  readonly start: Float64Array;
  readonly end: Float64Array;
  /** Node of the DAG; -1 for stages that the DAG leaves out. */
  readonly stage: Int32Array;
  /** Position among the resources; the number of resources for `other`. */
  readonly resource: Uint8Array;
  readonly failed: Uint8Array;
  /** The number of tasks that each row entry combines. */
  readonly count: Int32Array;
  /** The first row of each worker, and at the end the number of rows. */
  readonly ofWorker: Int32Array;
}

/** Maximum rows; beyond it, the lanes of a worker share one row. */
export const MAX_ROWS = 320;

export function rowsOf({ tasks, lanes, workers }: Timeline): Rows {
  const together = lanes.length > MAX_ROWS;
  const ofWorker = new Int32Array(workers.length + 1);
  for (const worker of lanes) ofWorker[worker + 1] = together ? 1 : ofWorker[worker + 1]! + 1;
  for (let worker = 0; worker < workers.length; worker += 1)
    ofWorker[worker + 1] = ofWorker[worker + 1]! + ofWorker[worker]!;
  const rows = ofWorker[workers.length]!;
  const row = (task: number): number => {
    const lane = tasks.lane[task]!;
    return together ? ofWorker[lanes[lane]!]! : lane;
  };

  const order = Array.from(tasks.start, (_, task) => task);
  if (together) order.sort((a, b) => row(a) - row(b) || tasks.start[a]! - tasks.start[b]!);
  const first = new Int32Array(rows + 1);
  for (const task of order) first[row(task) + 1] = first[row(task) + 1]! + 1;
  for (let each = 0; each < rows; each += 1) first[each + 1] = first[each + 1]! + first[each]!;
  return {
    first,
    start: Float64Array.from(order, (task) => tasks.start[task]!),
    end: Float64Array.from(order, (task) => tasks.start[task]! + tasks.length[task]!),
    stage: Int32Array.from(order, (task) => tasks.stage[task]!),
    resource: Uint8Array.from(order, (task) => tasks.resource[task]!),
    failed: Uint8Array.from(order, (task) => Number(tasks.failed[task])),
    count: Int32Array.from(order, (task) => tasks.count[task] ?? 1),
    ofWorker,
  };
}

export const rowCount = (rows: Rows): number => rows.first.length - 1;

/** The worker of a row. */
export function workerOf(rows: Rows, row: number): number {
  return rows.ofWorker.findIndex((first) => first > row) - 1;
}

/** The first task of a row that ends after a time; tasks of a row do not overlap, or only slightly. */
export function firstAfter(rows: Rows, row: number, time_ms: number): number {
  let low = rows.first[row]!;
  let high = rows.first[row + 1]!;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows.end[middle]! > time_ms) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The task of a row at a time, -1 for none; `slack_ms` makes short tasks easier to hit. */
export function taskAt(rows: Rows, row: number, time_ms: number, slack_ms: number): number {
  if (row < 0 || row >= rowCount(rows)) return -1;
  const found = firstAfter(rows, row, time_ms - slack_ms);
  return found < rows.first[row + 1]! && rows.start[found]! <= time_ms + slack_ms ? found : -1;
}

export interface Through {
  readonly row: number;
  readonly task: number;
  readonly step: number;
}

/** The tasks on the critical path: for each step, the task of its stage that ended last before the step did. */
export function tasksOnPath(rows: Rows, path: readonly PathStep[]): Through[] {
  const wanted = new Map<number, number[]>();
  path.forEach((step, index) => {
    if (step.stage >= 0) wanted.set(step.stage, [...(wanted.get(step.stage) ?? []), index]);
  });
  const best = new Map<number, Through>();
  for (let row = 0; row < rowCount(rows); row += 1)
    for (let task = rows.first[row]!; task < rows.first[row + 1]!; task += 1)
      for (const step of wanted.get(rows.stage[task]!) ?? []) {
        const { start_ms, end_ms } = path[step]!;
        if (rows.end[task]! > end_ms + 1 || rows.end[task]! <= start_ms) continue;
        const known = best.get(step);
        if (!known || rows.end[task]! > rows.end[known.task]!) best.set(step, { row, task, step });
      }
  return [...best.values()].sort((a, b) => a.step - b.step);
}

/** The mean number of running tasks in each of `bins` equal intervals. */
export function occupancy(rows: Rows, from_ms: number, to_ms: number, bins: number): Float64Array {
  const width = (to_ms - from_ms) / bins || 1;
  const busy = new Float64Array(bins);
  for (let task = 0; task < rows.start.length; task += 1) {
    const start = Math.max(0, (rows.start[task]! - from_ms) / width);
    const end = Math.min(bins, (rows.end[task]! - from_ms) / width);
    for (let bin = Math.floor(start); bin < end; bin += 1)
      busy[bin] = busy[bin]! + Math.min(end, bin + 1) - Math.max(start, bin);
  }
  return busy;
}
