import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flame } from "../src/data.ts";
import { search } from "../src/flame/search.ts";
import { bottomUp, kindOf, laidOut, matchedTime, topDown } from "../src/flame/tree.ts";

// main → a → c (30 cpu), main → b → c (10 net in stage 1), self time of main 5 waiting
const FLAME: Flame = {
  kinds: ["cpu", "net", "waiting", "unknown"],
  frames: ["main", "a", "b", "c"],
  labels: new Map(),
  parent: [-1, 0, 1, 1, 2, 3],
  frame: [-1, 0, 1, 2, 3, 3],
  operators: ["sort"],
  self: {
    node: [4, 5, 1],
    stage: [0, 1, -1],
    operator: [0, -1, -1],
    ms: [
      [30, 0, 0],
      [0, 10, 0],
      [0, 0, 5],
      [0, 0, 0],
    ],
  },
  mixedBelow: 0.6,
  why: "",
  coarsened: "",
};
const ALL = { stages: null, operator: null };

test("sums time from the leaves to the root, for the chosen stages and operator", () => {
  assert.deepEqual([...topDown(FLAME, ALL).total], [45, 45, 30, 10, 30, 10]);
  assert.deepEqual([...topDown(FLAME, { stages: new Set([1]), operator: null }).total], [10, 10, 0, 10, 0, 10]);
  assert.deepEqual([...topDown(FLAME, { stages: null, operator: 0 }).total], [30, 30, 30, 0, 30, 0]);
});

test("the tree from the leaf has each function once, with its callers below", () => {
  const tree = bottomUp(FLAME, ALL);
  const roots = [...tree.parent].flatMap((above, node) => (above === 0 ? node : []));
  const found = Object.fromEntries(roots.map((node) => [FLAME.frames[tree.frame[node]!], tree.self[node]]));
  assert.deepEqual(found, { c: 40, main: 5 });
  assert.equal(tree.total[0], 45);
});

test("a box is within its parent's and is as wide as its time", () => {
  const tree = topDown(FLAME, ALL);
  const { left, right, depth, levels } = laidOut(tree);
  for (let node = 2; node < tree.parent.length; node += 1) {
    const above = tree.parent[node]!;
    assert.ok(left[node]! >= left[above]! && right[node]! <= right[above]! + 1e-12);
    assert.ok(Math.abs(right[node]! - left[node]! - tree.total[node]! / 45) < 1e-12);
    assert.equal(depth[node], depth[above]! + 1);
  }
  assert.deepEqual(
    levels.map((each) => each.length),
    [1, 2, 2],
  );
});

test("colours a box by the kind with most of its time, or as mixed", () => {
  const tree = topDown(FLAME, ALL);
  const mixed = FLAME.kinds.length;
  assert.equal(kindOf(tree, 2, 0.6), 0);
  assert.equal(kindOf(tree, 5, 0.6), 1);
  assert.equal(kindOf(tree, 1, 0.6), 0);
  assert.equal(kindOf(tree, 1, 0.8), mixed);
});

test("counts the time of matches once, even if a stack has several", () => {
  const { places } = search(FLAME.frames, "^(main|c)$");
  assert.deepEqual([...places], [0, 3]);
  assert.equal(
    matchedTime(topDown(FLAME, ALL), (frame) => places.has(frame)),
    45,
  );
  assert.equal(
    matchedTime(topDown(FLAME, ALL), (frame) => search(FLAME.frames, "C").places.has(frame)),
    0,
  );
});

test("searches in linear time and reports invalid expressions", () => {
  const names = Array.from({ length: 2_000 }, (_, index) => `${"a".repeat(200)}!${index}`);
  assert.equal(search(names, "(a+)+$").places.size, 0);
  assert.equal(search(names, "(a|aa)*b").places.size, 0);
  assert.match(search(names, "(").wrong, /./);
  assert.match(search(names, "x".repeat(1000)).wrong, /longer/);
  assert.match(search(names, "(?=a)").wrong, /./);
});
