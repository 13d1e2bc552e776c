import assert from "node:assert/strict";
import { test } from "node:test";
import { byTime } from "../src/path.ts";

test("sorts operators of the path by time and leaves out those without time", () => {
  const rows = byTime([
    { name: "short", stages: 3, parts: { cpu: 1, net: 0.5, other: 0 } },
    { name: "none", stages: 1, parts: { cpu: 0, net: 0, other: 0 } },
    { name: "long", stages: 2, parts: { cpu: 1, net: 4, other: 2 } },
  ]);
  assert.deepEqual(
    rows.map(({ name, stages, time_ms }) => [name, stages, time_ms]),
    [
      ["long", 2, 7],
      ["short", 3, 1.5],
    ],
  );
});
