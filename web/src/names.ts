// Names in logs are untrusted: they are escaped so that they cannot control the page or reverse the text direction.

const LONGEST = 400;

/** The text on one line; invisible and direction characters are escaped as in the terminal: `\x1b`. */
export function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}\p{Zs}]/gu, (each) => (each === " " ? each : escaped(each)));
}

function escaped(character: string): string {
  if (/\s/.test(character)) return " ";
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}

/** A name as the page shows it: printable, with at most `most` characters. */
export function shown(name: string, most = LONGEST): string {
  // Cut first: a name may have a million characters.
  return cutRight(printable(name.slice(0, most + 1)), most);
}

/** A sentence with no-break spaces between figures and their tasks. */
export function tied(sentence: string): string {
  return printable(sentence).replace(/(\d) (?=%|s\b|ms\b|min\b|\d{3}\b)/g, "$1\u00a0");
}

/** The beginning of a long text. */
export function cutRight(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, Math.max(0, most - 1)).trimEnd()}…`;
}

/** The end of a long name, which is more specific than its beginning: `…util.HashMap.putVal`. */
export function cutLeft(text: string, most: number): string {
  return text.length <= most ? text : `…${text.slice(text.length - most + 1)}`;
}
