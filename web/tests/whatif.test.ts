import assert from "node:assert/strict";
import { test } from "node:test";
import type { Answer, Point, Setting, WhatIf } from "../src/data.ts";
import { amountText, command, read, settingText, stops } from "../src/whatif/model.ts";

function answer(predicted_ms: number | null, refused: string | null = null): Answer {
  const known = predicted_ms !== null;
  return {
    predicted_ms,
    low_ms: known ? 0.8 * predicted_ms : null,
    high_ms: known ? 1.25 * predicted_ms : null,
    bottleneck: known ? "cpu" : null,
    path_parts: known ? { cpu: predicted_ms, other: 0 } : null,
    stages: known ? [predicted_ms, null] : null,
    refused,
  };
}

function setting(key: string, counted: number | null, values: Record<string, number | null>): Setting {
  const points = Object.entries(values).map(([ratio, ms]): Point => {
    const refused = ms === null ? `${key}=${ratio}x: no answer` : null;
    const text = counted === null ? `${ratio}x` : String(counted * Number(ratio));
    return { ...answer(ms, refused), setting: `${key}=${ratio}x`, ratio: Number(ratio), text };
  });
  points.push({ ...answer(100), setting: "", ratio: 1, text: counted === null ? "1x" : String(counted) });
  points.sort((a, b) => a.ratio - b.ratio);
  return { key, label: key, counted, points, knee: null, knee_text: "" };
}

const WHAT_IF: WhatIf = {
  base_ms: 100,
  base: answer(100),
  settings: [
    setting("cores", 2, { 0.5: 170, 2: 80, 4: 70 }),
    setting("network", null, { 0.1: null, 0.5: 140, 2: 90, 10: 85 }),
    setting("disk", null, { 2: 99 }),
  ],
  pairs: [{ keys: ["cores", "network"], points: [{ ...answer(60), ratios: [2, 2] }] }],
  coarser: "",
  command: "crystalperf predict run --set {settings}",
};
const ask = (chosen: Record<string, number>) => read(WHAT_IF, new Map(Object.entries(chosen)));

test("returns the predictions of predict unchanged on the grid", () => {
  for (const each of WHAT_IF.settings)
    for (const point of each.points) {
      const reading = ask({ [each.key]: point.ratio });
      if (point.ratio === 1) assert.equal(reading.how, "recorded");
      else assert.equal(reading.answer, point);
    }
  assert.equal(ask({ cores: 2, network: 2 }).answer?.predicted_ms, 60);
  assert.equal(ask({ cores: 2, network: 2 }).how, "exact");
});

test("interpolates between two predictions and marks that", () => {
  const reading = ask({ cores: 1.5 });
  assert.equal(reading.how, "between");
  const ms = reading.answer?.predicted_ms ?? 0;
  assert.ok(ms < 100 && ms > 80, String(ms));
  assert.deepEqual(reading.settings, ["cores=3"]);
  const both = ask({ cores: 1.5, network: 1.5 });
  assert.equal(both.how, "between");
  const together = both.answer?.predicted_ms ?? 0;
  assert.ok(together < 100 && together > 60, String(together));
});

test("returns the reason of a refusal, also between grid points", () => {
  assert.equal(ask({ network: 0.1 }).how, "refused");
  assert.equal(ask({ network: 0.2 }).how, "refused");
  assert.equal(ask({ network: 0.2 }).answer?.refused, "network=0.1x: no answer");
  assert.equal(ask({ network: 0.2 }).answer?.predicted_ms, null);
});

test("returns only the command if the page has no prediction", () => {
  const reading = ask({ cores: 2, disk: 2 });
  assert.deepEqual([reading.how, reading.answer], ["unknown", null]);
  assert.equal(command(WHAT_IF, reading.settings), "crystalperf predict run --set cores=2x --set disk=2x");
  assert.equal(ask({ cores: 2, network: 2, disk: 2 }).how, "unknown");
});

test("a slider stops at every grid point, and between them only at possible amounts", () => {
  for (const each of WHAT_IF.settings) {
    const ratios = stops(each);
    for (const point of each.points) assert.ok(ratios.includes(point.ratio));
    assert.deepEqual(
      ratios,
      ratios.toSorted((a, b) => a - b),
    );
    for (const ratio of ratios) if (each.counted) assert.ok(Number.isInteger(each.counted * ratio), String(ratio));
    for (const ratio of ratios) assert.notEqual(read(WHAT_IF, new Map([[each.key, ratio]])).how, "unknown");
  }
  const [cores, network] = WHAT_IF.settings;
  assert.equal(amountText(cores!, 1.5), "3");
  assert.equal(settingText(network!, 1.41), "network=1.41x");
  assert.equal(settingText(network!, 2), "network=2x");
});
