// Long lists, which show their first rows until they are asked for all.

import { button, el } from "./dom.ts";

/** Hides the rows of a list behind the first ones, `head` rows of which are no rows but a head. */
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
