// Draws tasks into pixels without a canvas: one pass over the visible tasks.

import { firstAfter, type Rows, rowCount } from "./model.ts";

/** A fill: one colour, or lines of a texture that repeat downwards, each as wide as the picture. */
export interface Fill {
  readonly plain: number;
  readonly lines: readonly Uint32Array[];
}

export interface Look {
  /** One for each resource and for `other`; then the faded variant of each. */
  readonly fills: readonly Fill[];
  readonly failed: number;
  /** Minimum size in device pixels of a box with a visible texture. */
  readonly least: number;
}

export interface View {
  readonly from_ms: number;
  readonly to_ms: number;
  /** Device pixels. */
  readonly width: number;
  readonly height: number;
  /** By node of the DAG, 1 if it is not faded; null if no node is faded. */
  readonly chosen: Uint8Array | null;
}

/** Clears `pixels` (width times height values 0xAABBGGRR) and draws all rows into it. */
export function draw(rows: Rows, view: View, look: Look, pixels: Uint32Array): void {
  pixels.fill(0);
  const count = rowCount(rows);
  const line = new Int16Array(view.width);
  for (let row = 0; row < count; row += 1) {
    const top = Math.floor((row * view.height) / count);
    const bottom = Math.max(top + 1, Math.floor(((row + 1) * view.height) / count));
    if (!scan(rows, row, view, look.fills.length / 2, line)) continue;
    const height = bottom - top;
    const shown = height > 3 ? height - Math.max(1, Math.round(height / 8)) : height; // a gap between rows
    paint(line, view.width, top, top + shown, look, pixels);
  }
}

/**
 * Sets the fill of each pixel of a row in `line`: 0 for none, else 1 plus the fill's position; negative for failed tasks.
 * Returns whether the row has any task.
 */
function scan(rows: Rows, row: number, view: View, fills: number, line: Int16Array): boolean {
  line.fill(0);
  const { start, end, resource, failed, stage } = rows;
  const { from_ms, to_ms, width, chosen } = view;
  const perMs = width / (to_ms - from_ms);
  const last = rows.first[row + 1]!;
  let any = false;
  for (let task = firstAfter(rows, row, from_ms); task < last && start[task]! < to_ms; task += 1) {
    const left = Math.max(0, Math.floor((start[task]! - from_ms) * perMs));
    let right = Math.min(width, Math.max(left + 1, Math.floor((end[task]! - from_ms) * perMs)));
    const faded = chosen !== null && !chosen[stage[task]!];
    // If tasks share a pixel, those of the chosen stage are drawn.
    if (faded && right === left + 1 && line[left] !== 0) continue;
    const place = resource[task]! + 1 + (faded ? fills : 0);
    // A thin line between wide neighbours.
    if (right - left > 3 && right < width) right -= 1;
    const value = failed[task] ? -place : place;
    for (let x = left; x < right; x += 1) line[x] = value;
    any = true;
  }
  return any;
}

function paint(line: Int16Array, width: number, top: number, bottom: number, look: Look, pixels: Uint32Array): void {
  const base = top * width;
  let failed = false;
  for (let x = 0; x < width; x += 1) {
    const place = line[x]!;
    failed ||= place < 0;
    if (place !== 0) pixels[base + x] = look.fills[(place < 0 ? -place : place) - 1]!.plain;
  }
  for (let y = top + 1; y < bottom; y += 1) pixels.copyWithin(y * width, base, base + width);
  const tall = bottom - top >= look.least;
  if (!tall && !failed) return;
  for (let left = 0; left < width; ) {
    const place = line[left]!;
    let right = left + 1;
    while (right < width && line[right] === place) right += 1;
    if (place !== 0) {
      const { lines } = look.fills[Math.abs(place) - 1]!;
      if (tall && lines.length && right - left >= look.least) texture(lines, left, right, top, bottom, width, pixels);
      if (place < 0) foot(left, right, top, bottom, width, look.failed, pixels);
    }
    left = right;
  }
}

function texture(
  lines: readonly Uint32Array[],
  left: number,
  right: number,
  top: number,
  bottom: number,
  width: number,
  pixels: Uint32Array,
): void {
  for (let y = top; y < bottom; y += 1) {
    const from = lines[y % lines.length]!;
    const at = y * width;
    for (let x = left; x < right; x += 1) pixels[at + x] = from[x]!;
  }
}

/** Draws the line at the bottom of a failed task. */
function foot(
  left: number,
  right: number,
  top: number,
  bottom: number,
  width: number,
  colour: number,
  pixels: Uint32Array,
): void {
  const from = bottom - Math.max(1, Math.round((bottom - top) / 4));
  for (let y = from; y < bottom; y += 1) for (let x = left; x < right; x += 1) pixels[y * width + x] = colour;
}
