import assert from "node:assert/strict";
import { test } from "node:test";
import type { Timeline } from "../src/data.ts";
import { MAX_ROWS, occupancy, rowCount, rowsOf, taskAt, tasksOnPath, workerOf } from "../src/timeline/model.ts";
import { draw, type Look } from "../src/timeline/raster.ts";

/** `tasks` are [lane, start, length, stage, resource]. */
function timeline(lanes: number[], tasks: [number, number, number, number, number][]): Timeline {
  const column = (place: 0 | 1 | 2 | 3 | 4): number[] => tasks.map((each) => each[place]);
  return {
    start_ms: 0,
    end_ms: 100,
    figure: { name: "s", ms: 1_000, decimals: 1 },
    workers: [...new Set(lanes)].map((each) => ({ name: String(each), host: null })),
    lanes,
    tasks: {
      lane: column(0),
      start: column(1),
      length: column(2),
      stage: column(3),
      resource: column(4),
      failed: tasks.map(() => false),
      count: [],
    },
    coarsened: "",
    driver: [],
    pauses: [],
    path: [],
  };
}

const TWO = timeline(
  [0, 0, 1],
  [
    [0, 0, 50, 0, 0],
    [0, 50, 50, 1, 1],
    [1, 10, 20, 0, 0],
    [2, 40, 60, 1, 2],
  ],
);

test("has one row per lane and finds tasks by time", () => {
  const rows = rowsOf(TWO);
  assert.equal(rowCount(rows), 3);
  assert.deepEqual([...rows.ofWorker], [0, 2, 3]);
  assert.deepEqual(
    [0, 1, 2].map((row) => workerOf(rows, row)),
    [0, 0, 1],
  );
  assert.equal(taskAt(rows, 0, 49, 0), 0);
  assert.equal(taskAt(rows, 0, 51, 0), 1);
  assert.equal(taskAt(rows, 1, 40, 0), -1);
  assert.equal(taskAt(rows, 1, 31, 2), 2);
  assert.equal(taskAt(rows, 9, 31, 2), -1);
});

test("merges the lanes of a worker into one row if there are too many", () => {
  const lanes = Array.from({ length: MAX_ROWS + 1 }, (_, lane) => Math.floor(lane / 2));
  const rows = rowsOf(
    timeline(
      lanes,
      lanes.map((_, lane) => [lane, 100 - lane / 10, 1, 0, 0]),
    ),
  );
  assert.equal(rowCount(rows), Math.ceil(lanes.length / 2));
  assert.ok(rows.start[0]! <= rows.start[1]!);
  assert.equal(rows.first.at(-1), lanes.length);
});

test("running tasks sum up to the time of all tasks", () => {
  const busy = occupancy(rowsOf(TWO), 0, 100, 10);
  assert.ok(Math.abs(10 * busy.reduce((a, b) => a + b, 0) - 180) < 1e-9);
  assert.equal(busy[1], 2);
});

test("draws the path through the task that ended last before each step's end", () => {
  const rows = rowsOf(TWO);
  const step = (stage: number, start_ms: number, end_ms: number) => ({
    ...{ id: "", name: "", parts: {} },
    ...{ stage, start_ms, end_ms },
  });
  const found = tasksOnPath(rows, [step(0, 0, 50), step(-1, 50, 52), step(1, 52, 100)]);
  assert.deepEqual(
    found.map((each) => each.step),
    [0, 2],
  );
  assert.deepEqual(
    found.map((each) => rows.end[each.task]),
    [50, 100],
  );
});

test("draws tasks at their pixels, faded if not chosen", () => {
  const fill = (plain: number) => ({ plain, lines: [] });
  const look: Look = { fills: [1, 2, 3, 11, 12, 13].map(fill), failed: 9, least: 5 };
  const pixels = new Uint32Array(100 * 30);
  const view = { from_ms: 0, to_ms: 100, width: 100, height: 30, chosen: null };
  draw(rowsOf(TWO), view, look, pixels);
  assert.deepEqual(
    [pixels[5], pixels[60], pixels[5 + 10 * 100], pixels[15 + 10 * 100], pixels[50 + 20 * 100]],
    [1, 2, 0, 1, 3],
  );
  draw(rowsOf(TWO), { ...view, chosen: Uint8Array.of(1, 0) }, look, pixels);
  assert.deepEqual([pixels[5], pixels[60]], [1, 12]);
  draw(rowsOf(TWO), { ...view, from_ms: 40, to_ms: 60 }, look, pixels);
  assert.deepEqual([pixels[10], pixels[70]], [1, 2]);
});

test("draws textures in large boxes only, and failures always", () => {
  const fills = [0, 1, 2, 3].map((each) => ({ plain: 10 * each, lines: [new Uint32Array(100).fill(10 * each + 1)] }));
  const pixels = new Uint32Array(100 * 30);
  const view = { from_ms: 0, to_ms: 100, width: 100, height: 30, chosen: null };
  const tasks = timeline(
    [0, 0, 1],
    [
      [0, 0, 50, 0, 1],
      [1, 0, 3, 0, 1],
      [2, 0, 50, 0, 1],
    ],
  );
  const failing = { ...tasks, tasks: { ...tasks.tasks, failed: [false, false, true] } };
  draw(rowsOf(failing), view, { fills, failed: 9, least: 5 }, pixels);
  assert.deepEqual([pixels[10], pixels[1 + 12 * 100]], [11, 10]);
  assert.deepEqual([pixels[10 + 22 * 100], pixels[10 + 28 * 100]], [11, 9]);
});
