import assert from "node:assert/strict";
import { test } from "node:test";
import { cutLeft, cutRight, printable, shown, tied } from "../src/names.ts";

test("escapes invisible and direction characters", () => {
  assert.equal(printable("a\u202eb\u0007c\nd\u{e0041}"), "a\\u202eb\\x07c d\\U000e0041");
  assert.equal(printable("grüße 数据 📈 <b>"), "grüße 数据 📈 <b>");
});

test("cuts long names before escaping them", () => {
  const name = shown("x".repeat(1_000_000), 50);
  assert.equal(name.length, 50);
  assert.ok(name.endsWith("…"));
  assert.equal(cutLeft("java.util.HashMap.put", 12), "…HashMap.put");
  assert.equal(cutRight("short", 5), "short");
});

test("ties figures to their tasks with no-break spaces", () => {
  assert.equal(tied("49.5 of 116.2 s (43 %); 2 139 samples"), "49.5 of 116.2\u00a0s (43\u00a0%); 2\u00a0139 samples");
});
