// Long lists that show only their first rows, with a button that shows all.

import { button, el } from "./dom.ts";

/** Hides the rows after the first `most`, and returns the button that shows them; null if there are few. */
export function hiddenAfter(rows: readonly Element[], most: number): HTMLButtonElement | null {
  if (rows.length <= most + 1) return null;
  for (const row of rows.slice(most)) row.toggleAttribute("hidden", true);
  const more = button(
    `Show all ${rows.length}`,
    () => {
      for (const row of rows) row.toggleAttribute("hidden", false);
      more.remove();
    },
    { class: "quiet more" },
  );
  return more;
}

/** Shortens a list; `head` is the number of header rows, which do not count. */
export function shortened(list: HTMLElement, most: number, head = 0): HTMLElement {
  const more = hiddenAfter([...list.children].slice(head), most);
  return more ? el("div", {}, list, more) : list;
}
