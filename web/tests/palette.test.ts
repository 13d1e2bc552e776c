import assert from "node:assert/strict";
import { test } from "node:test";
import { paintOf } from "../src/palette.ts";

test("a training's resources differ in colour and texture", () => {
  const paints = ["cpu", "disk", "net", "gpu", "pcie", "link", "other"].map(paintOf);
  assert.equal(new Set(paints.map((each) => each.variable)).size, paints.length);
  const further = paints.slice(3, 6);
  assert.equal(new Set(further.map((each) => each.texture)).size, further.length);
});
