// Figures as the terminal writes them: one unit for all times of a page, digits in groups of three, `<1 %` above zero.

/** The unit of all times of a page: its length in ms, and the number of decimals shown. */
export interface TimeUnit {
  readonly name: string;
  readonly ms: number;
  readonly decimals: number;
}

/** `toFixed`, but halves go to the even digit, as in Python, so that page and terminal show the same digits. */
export function fixed(value: number, decimals: number): string {
  const exact = Math.abs(value).toFixed(Math.min(100, decimals + 60));
  const [whole = "0", fraction = ""] = exact.split(".");
  const rest = fraction.slice(decimals);
  if (!/^50*$/.test(rest)) return signed(value, value.toFixed(decimals));
  const kept = `${whole}${fraction.slice(0, decimals)}`;
  const even = Number(kept.at(-1)) % 2 === 0 ? BigInt(kept) : BigInt(kept) + 1n;
  const digits = even.toString().padStart(decimals + 1, "0");
  const point = digits.length - decimals;
  const text = decimals ? `${digits.slice(0, point)}.${digits.slice(point)}` : digits;
  return signed(value, value < 0 ? `-${text}` : text);
}

/** Zero without a sign, as in the terminal: not `-0.0`. */
function signed(value: number, text: string): string {
  return value === 0 ? text.replace("-", "") : text;
}

export class Figures {
  constructor(readonly of: TimeUnit) {}

  /** Without the unit; a dot if it rounds to zero, a question mark if it is unknown. */
  number(ms: number | null): string {
    if (ms === null) return "?";
    const value = ms / this.of.ms;
    return Math.abs(value) < 0.5 * 10 ** -this.of.decimals ? "." : fixed(value, this.of.decimals);
  }

  /** With the unit: `26.0 s`. */
  text(ms: number): string {
    return `${fixed(ms / this.of.ms, this.of.decimals)} ${this.of.name}`;
  }

  /** With its sign and the unit: `+26.0 s`; `0.0 s` if it rounds to zero. */
  signed(ms: number): string {
    const text = this.text(ms);
    if (!/[1-9]/.test(text)) return text.replace("-", "");
    return ms > 0 ? `+${text}` : text;
  }

  /** `58.3 to 100.0 s`. */
  range(low_ms: number, high_ms: number): string {
    return `${fixed(low_ms / this.of.ms, this.of.decimals)} to ${this.text(high_ms)}`;
  }
}

/** `31 %`; `<1 %` instead of zero for a small positive share. */
export function percent(part: number, whole: number): string {
  if (whole <= 0) return "? %";
  const value = (100 * part) / whole;
  return value > 0 && value < 0.5 ? "<1 %" : `${fixed(value, 0)} %`;
}

/** The signed change in percent: `-43 %`. */
export function change(after: number, before: number): string {
  if (before <= 0) return "?";
  const value = Number(fixed((100 * (after - before)) / before, 0));
  return value ? `${value > 0 ? "+" : ""}${value} %` : "0 %";
}

/** `6 104`: thousands apart. */
export function grouped(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, " ");
}
