// Search of names by regular expression.  RE2 matches in time linear in the name, so no expression hangs the page.

import { RE2JS } from "re2js";

const LONGEST_PATTERN = 300;
const LONGEST_NAME = 2_000;

export interface Found {
  /** Positions of the names that match; empty if the expression is invalid. */
  readonly places: ReadonlySet<number>;
  /** RE2's error about the expression; empty if it is valid. */
  readonly wrong: string;
}

/** Searches names; case is significant only if the expression has capital letters. */
export function search(names: readonly string[], pattern: string): Found {
  if (!pattern) return { places: new Set(), wrong: "" };
  if (pattern.length > LONGEST_PATTERN)
    return { places: new Set(), wrong: `longer than ${LONGEST_PATTERN} characters` };
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(pattern, /\p{Lu}/u.test(pattern) ? 0 : RE2JS.CASE_INSENSITIVE);
  } catch (error) {
    return { places: new Set(), wrong: error instanceof Error ? error.message : String(error) };
  }
  const places = new Set<number>();
  names.forEach((name, place) => {
    if (compiled.matcher(name.slice(0, LONGEST_NAME)).find()) places.add(place);
  });
  return { places, wrong: "" };
}
