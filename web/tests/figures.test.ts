import assert from "node:assert/strict";
import { test } from "node:test";
import { change, Figures, fixed, grouped, percent } from "../src/figures.ts";

test("rounds halves to the even digit, as Python does", () => {
  // python: [f"{x:.1f}" for x in (0.25, 0.35, 0.75, 1.25, 2.675, 1e21)], f"{2.5:.0f}", f"{-0.25:.1f}"
  assert.deepEqual(
    [0.25, 0.35, 0.75, 1.25].map((each) => fixed(each, 1)),
    ["0.2", "0.3", "0.8", "1.2"],
  );
  assert.equal(fixed(2.675, 2), "2.67");
  assert.equal(fixed(2.5, 0), "2");
  assert.equal(fixed(9.5, 0), "10");
  assert.equal(fixed(-0.25, 1), "-0.2");
  assert.equal(fixed(0, 1), "0.0");
});

test("writes times in the page's unit", () => {
  const seconds = new Figures({ name: "s", ms: 1000, decimals: 1 });
  assert.equal(seconds.text(116_238), "116.2 s");
  assert.equal(seconds.number(49), ".");
  assert.equal(seconds.number(51), "0.1");
  assert.equal(seconds.number(null), "?");
  assert.equal(seconds.range(58_291, 100_040), "58.3 to 100.0 s");
});

test("writes shares, changes and counts as the terminal does", () => {
  assert.deepEqual([percent(1, 0), percent(0, 5), percent(1, 1000), percent(1, 3)], ["? %", "0 %", "<1 %", "33 %"]);
  assert.deepEqual(
    [change(66, 100), change(112, 100), change(100.4, 100), change(1, 0)],
    ["-34 %", "+12 %", "0 %", "?"],
  );
  assert.deepEqual([grouped(999), grouped(2139), grouped(1_000_000)], ["999", "2 139", "1 000 000"]);
});
