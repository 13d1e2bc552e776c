// Bundles the scripts and the style of the pages into report/assets; `--tests` and `--bench` bundle those for Node instead.
import { readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const LIMIT_BYTES = 300 * 1024;
const common = { absWorkingDir: here, bundle: true, logLevel: "warning", charset: "ascii", legalComments: "none" };

if (process.argv.includes("--tests") || process.argv.includes("--bench")) {
  rmSync(join(here, "build"), { recursive: true, force: true });
  const entries = process.argv.includes("--bench")
    ? ["bench.ts"]
    : readdirSync(join(here, "tests")).map((name) => `tests/${name}`);
  const outdir = process.argv.includes("--bench") ? "build" : "build/tests";
  await build({ ...common, entryPoints: entries, outdir, platform: "node", format: "esm" });
} else {
  const result = await build({
    ...common,
    // The banner names the licences of the bundled libraries, whose own comments are left out.
    banner: {
      js: "/* CrystalPerf, Apache-2.0. With @dagrejs/dagre and re2js, MIT; d3-array, ISC. Made from web/. */",
      css: "/* CrystalPerf, Apache-2.0. Made from web/. */",
    },
    entryPoints: { page: "src/main.ts", comparison: "src/comparison/main.ts" },
    outdir: "../report/assets",
    format: "iife",
    target: ["chrome123", "firefox121", "safari17.5"],
    minify: true,
    metafile: true,
  });
  // Both pages have the same style.
  const bytesOf = (name) => result.metafile.outputs[`../report/assets/${name}`].bytes;
  for (const page of ["page", "comparison"]) {
    const bytes = bytesOf(`${page}.js`) + bytesOf("page.css");
    console.log(`${page}.js and page.css: ${(bytes / 1024).toFixed(1)} KB of ${LIMIT_BYTES / 1024} KB`);
    if (bytes > LIMIT_BYTES) throw new Error(`${page}.js and page.css together exceed ${LIMIT_BYTES / 1024} KB`);
  }
  rmSync(join(here, "../report/assets/comparison.css"));
}
