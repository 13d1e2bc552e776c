// Long lists that show only their first rows, with a button that shows all.

import { button, el } from "./dom.ts";

/** Hides the rows of a list after the first `most`; `head` is the number of header rows, which do not count. */
export function shortened(list: HTMLElement, most: number, head = 0): HTMLElement {
  const rows = [...list.children].slice(head);
  if (rows.length <= most + 1) return list;
  for (const row of rows.slice(most)) row.toggleAttribute("hidden", true);
  const more = button(
    `Show all ${rows.length}`,
    () => {
      for (const row of rows) row.toggleAttribute("hidden", false);
      more.remove();
    },
    { class: "quiet more" },
  );
  return el("div", {}, list, more);
}
