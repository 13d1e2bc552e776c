import assert from "node:assert/strict";
import { test } from "node:test";
import { chosenNodes, MAX_NODES, placed, ties } from "../src/dag/layout.ts";
import type { Dag, DagNode } from "../src/data.ts";

function dag(kinds: string, edges: [number, number][]): Dag {
  const nodes = [...kinds].map(
    (kind, index): DagNode => ({
      id: `${kind}:${index}`,
      name: "",
      is_stage: kind === "g",
      scope: null,
      start_ms: index,
      end_ms: index + 1,
      parts: {},
      path_ms: index,
      tasks: 1,
      spread: null,
    }),
  );
  return { nodes, edges: edges.map(([from, to]) => ({ from, to })), scopes: [], operators: [], reduced: "" };
}

test("connects stages across hidden nodes", () => {
  const found = ties(
    dag("gcg", [
      [0, 1],
      [1, 2],
    ]),
    new Set([0, 2]),
  );
  assert.deepEqual(found, { joints: [], edges: [[0, 2]] });
  const chain = ties(
    dag("gccg", [
      [0, 1],
      [1, 2],
      [2, 3],
    ]),
    new Set([0, 3]),
  );
  assert.deepEqual(chain.edges, [[0, 3]]);
});

test("draws many-to-many edges through one point, and no point without targets", () => {
  const edges: [number, number][] = [0, 1, 2].flatMap((each): [number, number][] => [
    [each, 3],
    [3, 4 + each],
  ]);
  const found = ties(dag("gggcggg", edges), new Set([0, 1, 2, 4, 5, 6]));
  assert.deepEqual(found.joints, [3]);
  assert.equal(found.edges.length, 6);
  assert.deepEqual(ties(dag("gggcggg", edges), new Set([0, 1, 2])), { joints: [], edges: [] });
});

test("lays out boxes without overlap, with all edges", () => {
  const found = placed(
    dag("gggg", [
      [0, 1],
      [0, 2],
      [1, 3],
      [2, 3],
    ]),
    [0, 1, 2, 3],
  );
  assert.equal(found.edges.length, 4);
  for (const one of found.stages)
    for (const other of found.stages)
      if (one !== other) assert.ok(Math.abs(one.x - other.x) >= 172 || Math.abs(one.y - other.y) >= 58);
});

test("draws the stages with most critical-path time if there are too many", () => {
  const many = dag("g".repeat(MAX_NODES + 50), []);
  const { nodes, of } = chosenNodes(many, null);
  assert.deepEqual([nodes.length, of, nodes[0]], [MAX_NODES, MAX_NODES + 50, 50]);
});
