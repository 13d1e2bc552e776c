import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Figures } from "../src/figures.ts";
import { type Choice, changeOf, differenceTree, type FlameChange, STRONGEST, stepOf } from "../src/flame/difference.ts";
import { laidOut } from "../src/flame/tree.ts";
import { inkOn, luminance } from "../src/palette.ts";

// main → scan (disk 4000 → 1000), main → join (cpu 2000 → 0), main → sort (cpu 0 → 3000)
const FLAME: FlameChange = {
  kinds: ["cpu", "disk", "waiting", "unknown"],
  frames: ["main", "scan", "join", "sort"],
  parent: [-1, 0, 1, 1, 1],
  frame: [-1, 0, 1, 2, 3],
  self: {
    node: [2, 3, 4],
    before: [
      [0, 2000, 0],
      [4000, 0, 0],
      [0, 0, 0],
      [0, 0, 0],
    ],
    after: [
      [0, 0, 3000],
      [1000, 0, 0],
      [0, 0, 0],
      [0, 0, 0],
    ],
    variance: [100_000, 40_000, 60_000],
  },
  total_ms: [6000, 4000],
  deviations: 3,
};
const ALL: Choice = { kind: null, shares: false, width: "both" };

test("sums the time before and after of each branch, and its noise", () => {
  const tree = differenceTree(FLAME, false, ALL);
  assert.deepEqual(changeOf(FLAME, tree, 0, ALL), { before: 6000, after: 4000, noise: Math.sqrt(200_000) });
  assert.deepEqual(changeOf(FLAME, tree, 2, ALL), { before: 4000, after: 1000, noise: Math.sqrt(100_000) });
  assert.deepEqual(changeOf(FLAME, tree, 1, { ...ALL, kind: 1 }).before, 4000);
});

test("the width of a box is its time before, after, or the mean", () => {
  assert.deepEqual([...differenceTree(FLAME, false, ALL).total], [5000, 5000, 2500, 1000, 1500]);
  assert.deepEqual([...differenceTree(FLAME, false, { ...ALL, width: "before" }).total], [6000, 6000, 4000, 2000, 0]);
  const after = differenceTree(FLAME, false, { ...ALL, width: "after" });
  assert.deepEqual([...after.total], [4000, 4000, 1000, 0, 3000]);
  assert.equal(laidOut(after).levels[1]?.length, 2);
});

test("shares scale the time after to the total before", () => {
  const choice = { ...ALL, shares: true };
  const tree = differenceTree(FLAME, false, choice);
  const whole = changeOf(FLAME, tree, 0, choice);
  assert.equal(whole.before, whole.after);
  assert.equal(changeOf(FLAME, tree, 4, choice).after, 4500);
});

test("the tree from the leaf has each function with its change", () => {
  const tree = differenceTree(FLAME, true, ALL);
  const roots = [...tree.parent].flatMap((above, node) => (above === 0 ? node : []));
  const found = Object.fromEntries(
    roots.map((node) => {
      const { before, after } = changeOf(FLAME, tree, node, ALL);
      return [FLAME.frames[tree.frame[node]!], [before, after]];
    }),
  );
  assert.deepEqual(found, { scan: [4000, 1000], join: [2000, 0], sort: [0, 3000] });
});

test("a change has a step by its ratio, and none within the noise", () => {
  const step = (before: number, after: number, noise = 0): number => stepOf({ before, after, noise }, 3);
  assert.equal(step(100, 100), 0);
  assert.equal(step(100, 129, 10), 0);
  assert.equal(step(100, 131, 10), 2);
  assert.equal(step(100, 120), 1);
  assert.equal(step(100, 300), 3);
  assert.equal(step(0, 10), STRONGEST);
  assert.equal(step(10, 0), -STRONGEST);
  assert.equal(step(300, 100), -3);
});

test("a signed figure has its sign, and none if it rounds to zero", () => {
  const figures = new Figures({ name: "s", ms: 1000, decimals: 1 });
  assert.deepEqual(
    [3000, -3000, 20, -20, 0].map((ms) => figures.signed(ms)),
    ["+3.0 s", "-3.0 s", "0.0 s", "0.0 s", "0.0 s"],
  );
});

test("text on a colour has a contrast of at least 4.5", () => {
  const parsed = (hex: string): [number, number, number] =>
    [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as [number, number, number];
  const style = readFileSync("src/page.css", "utf8");
  const pairs = [...style.matchAll(/--(?:even|rise\d|fall\d|stage\d): light-dark\((#\w{6}), (#\w{6})\)/g)];
  assert.equal(pairs.length, 15);
  for (const [, ...colours] of pairs)
    for (const each of colours) {
      const rgb = parsed(each!);
      const ink = luminance(parsed(inkOn(`rgb(${rgb.join(", ")})`)));
      const [low, high] = [Math.min(ink, luminance(rgb)), Math.max(ink, luminance(rgb))];
      assert.ok((high + 0.05) / (low + 0.05) >= 4.5, `${each}: ${(high + 0.05) / (low + 0.05)}`);
    }
});
