// Colours of resources: three that differ in hue and in lightness (after Paul Tol's high-contrast scheme), and for each
// a texture as a second cue, so that the page reads on paper, in grey and with any colour vision.

export type Texture = "plain" | "diagonal" | "dots" | "cross" | "lines";

export interface Paint {
  /** The custom property that holds the colour; page.css has its value for light and dark. */
  readonly variable: string;
  readonly texture: Texture;
}

const PAINTS: Readonly<Record<string, Paint>> = {
  cpu: { variable: "--cpu", texture: "plain" },
  disk: { variable: "--disk", texture: "diagonal" },
  net: { variable: "--net", texture: "dots" },
  mixed: { variable: "--mixed", texture: "cross" },
  waiting: { variable: "--other", texture: "lines" },
  other: { variable: "--other", texture: "lines" },
  unknown: { variable: "--other", texture: "plain" },
};
const FURTHER: readonly Paint[] = [
  { variable: "--more1", texture: "cross" },
  { variable: "--more2", texture: "diagonal" },
  { variable: "--more3", texture: "lines" },
];

/** The paint of a resource by its name; of a framework's own resource, by its position. */
export function paintOf(name: string, place = 0): Paint {
  return PAINTS[name] ?? FURTHER[place % FURTHER.length]!;
}

const known = new Map<string, string>();

/** The colour that a custom property has now, light or dark. */
export function colour(variable: string): string {
  const found = known.get(variable);
  if (found) return found;
  // A custom property is plain text; only an element's computed style has it as a colour.
  const probe = document.createElement("i");
  probe.style.color = `var(${variable})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  known.set(variable, color);
  return color;
}

/** Clears the cached colours after a change between light and dark. */
export function forgetColours(): void {
  known.clear();
}

/** The colour of text on a colour of the page: black or white, whichever has more contrast. */
export function inkOn(plate: string): string {
  const [red = 0, green = 0, blue = 0] = (plate.match(/[\d.]+/g) ?? []).map(Number);
  return luminance([red, green, blue]) > 0.193 ? "#10131a" : "#ffffff";
}

/** The relative luminance of a colour of three values from 0 to 255 (WCAG 2). */
export function luminance(rgb: readonly [number, number, number]): number {
  const [red, green, blue] = rgb.map((each) => {
    const value = each / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Whether a pixel belongs to a texture's ink; `x` and `y` in device pixels, `scale` device pixels in one of CSS. */
export function inked(texture: Texture, x: number, y: number, scale: number): boolean {
  const at = Math.floor(x / scale);
  const down = Math.floor(y / scale);
  if (texture === "diagonal") return (at + down) % 6 < 2;
  if (texture === "dots") return at % 5 < 2 && down % 5 < 2;
  if (texture === "cross") return (at + down) % 6 === 0 || (at + 5 * down) % 6 === 0;
  if (texture === "lines") return down % 5 === 0;
  return false;
}

const TILE = 30; // a multiple of the period of every texture

/** A pattern to fill with on a canvas. */
export function pattern(context: CanvasRenderingContext2D, paint: Paint, scale: number): CanvasPattern | string {
  const base = colour(paint.variable);
  if (paint.texture === "plain") return base;
  const side = Math.round(TILE * scale);
  const tile = document.createElement("canvas");
  tile.width = side;
  tile.height = side;
  const brush = tile.getContext("2d");
  if (!brush) return base;
  brush.fillStyle = base;
  brush.fillRect(0, 0, side, side);
  brush.fillStyle = colour("--ink-in-bars");
  for (let y = 0; y < side; y += 1)
    for (let x = 0; x < side; x += 1) if (inked(paint.texture, x, y, scale)) brush.fillRect(x, y, 1, 1);
  const made = context.createPattern(tile, "repeat") ?? base;
  if (typeof made !== "string") made.setTransform(new DOMMatrix().scale(1 / scale));
  return made;
}
