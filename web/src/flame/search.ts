// Names that a regular expression matches.  RE2's matching is linear in the name, so no expression hangs the page.

import { RE2JS } from "re2js";

const LONGEST_PATTERN = 300;
const LONGEST_NAME = 2_000;

export interface Found {
  /** Places of names that match, empty where the expression is none. */
  readonly places: ReadonlySet<number>;
  /** What is wrong with the expression, in RE2's words; empty where nothing is. */
  readonly wrong: string;
}

/** Which names match; case counts only where the expression has capitals. */
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
