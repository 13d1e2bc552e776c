// Script time of one frame while 100 000 tasks are panned, and of summing and laying out a flame graph.

import type { Flame, Timeline } from "./src/data.ts";
import { bottomUp, laidOut, topDown } from "./src/flame/tree.ts";
import { rowsOf } from "./src/timeline/model.ts";
import { draw, type Look } from "./src/timeline/raster.ts";

const TASKS = 100_000;
const [WIDTH, HEIGHT] = [1_440, 420]; // with so many tasks, one device pixel per CSS pixel
const FRAMES = 120;

function made(lanes: number): Timeline {
  const each = Math.ceil(TASKS / lanes);
  const lane = Array.from({ length: TASKS }, (_, task) => Math.floor(task / each));
  const zeros = lane.map(() => 0);
  return {
    start_ms: 0,
    end_ms: each * 100,
    figure: { name: "s", ms: 1_000, decimals: 1 },
    workers: Array.from({ length: Math.ceil(lanes / 4) }, (_, worker) => ({ name: String(worker), host: null })),
    lanes: Array.from({ length: lanes }, (_, place) => Math.floor(place / 4)),
    tasks: {
      lane,
      start: lane.map((_, task) => (task % each) * 100),
      length: lane.map((_, task) => 60 + ((task * 7919) % 40)),
      stage: zeros,
      resource: lane.map((_, task) => task % 4),
      failed: lane.map((_, task) => task % 97 === 0),
      count: [],
    },
    coarsened: "",
    driver: [],
    pauses: [],
    path: [],
  };
}

const lines = (value: number) => Array.from({ length: 60 }, () => new Uint32Array(WIDTH).fill(value));
const look: Look = {
  fills: [0, 1, 2, 3, 4, 5, 6, 7].map((each) => ({ plain: each, lines: each % 4 ? lines(each) : [] })),
  failed: 9,
  least: 10,
};

/** CPU time of this process in ms, which other programs do not change. */
function clock(): number {
  return process.cpuUsage().user / 1_000;
}

function middle(times: number[]): string {
  times.sort((a, b) => a - b);
  return `${times[times.length >> 1]!.toFixed(1)} ms median, ${times[Math.floor(0.95 * times.length)]!.toFixed(1)} ms at the 95th percentile`;
}

for (const lanes of [16, 160, 800]) {
  const timeline = made(lanes);
  const rows = rowsOf(timeline);
  const pixels = new Uint32Array(WIDTH * HEIGHT);
  for (const share of [1, 0.3]) {
    const span = share * timeline.end_ms;
    const times: number[] = [];
    for (let frame = 0; frame < FRAMES; frame += 1) {
      const from_ms = ((timeline.end_ms - span) * frame) / FRAMES;
      const began = clock();
      draw(rows, { from_ms, to_ms: from_ms + span, width: WIDTH, height: HEIGHT, chosen: null }, look, pixels);
      times.push(clock() - began);
    }
    const seen = share === 1 ? "the whole run" : `${100 * share} % of the run`;
    console.log(`timeline: ${TASKS} tasks on ${lanes} lanes, ${seen} visible: ${middle(times)} of CPU time per frame`);
  }
}

const nodes = 12_000;
const flame: Flame = {
  kinds: ["cpu", "disk", "net", "waiting", "unknown"],
  frames: Array.from({ length: 3_000 }, (_, frame) => `org.example.Class${frame}.method`),
  labels: new Map(),
  parent: Array.from({ length: nodes }, (_, node) => (node === 0 ? -1 : node % 60 === 1 ? 0 : node - 1)),
  frame: Array.from({ length: nodes }, (_, node) => (node === 0 ? -1 : (node * 17) % 3_000)),
  operators: [],
  self: {
    node: Array.from({ length: 16_000 }, (_, row) => (row * 13) % nodes),
    stage: new Array<number>(16_000).fill(0),
    operator: new Array<number>(16_000).fill(-1),
    ms: [0, 1, 2, 3, 4].map(() => new Array<number>(16_000).fill(1)),
  },
  mixedBelow: 0.6,
  why: "",
  coarsened: "",
};
for (const [name, sum] of [
  ["top-down", topDown],
  ["bottom-up", bottomUp],
] as const) {
  const times = Array.from({ length: 20 }, () => {
    const began = clock();
    laidOut(sum(flame, { stages: null, operator: null }));
    return clock() - began;
  });
  console.log(`flame graph: ${nodes} nodes summed and laid out ${name}: ${middle(times)}`);
}
