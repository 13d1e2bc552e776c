// For a stream, a table with one row per stage: its records per second and how busy it is.

import type { Context } from "./context.ts";
import { el } from "./dom.ts";
import { printable, shown } from "./names.ts";

export function stations(context: Context): HTMLElement | null {
  const { page_text, words } = context.data;
  const { heads, rows, note } = page_text.stations;
  if (!rows.length) return null;
  const [id, , ...figures] = heads;
  return el(
    "section",
    { id: "stations", "aria-labelledby": "stations-title" },
    el("h2", { id: "stations-title" }, `How busy each ${words.stage} is`),
    el(
      "div",
      { class: "table", tabindex: 0, role: "region", "aria-labelledby": "stations-title" },
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, el("th", {}, id), ...figures.map((each) => el("th", { class: "figure" }, each)))),
        el(
          "tbody",
          {},
          ...rows.map(([stage, name, ...texts]) =>
            el(
              "tr",
              {},
              el("td", {}, el("span", { class: "id" }, shown(stage ?? "", 40)), " ", shown(name ?? "", 80)),
              ...texts.map((each) => el("td", { class: "figure" }, each)),
            ),
          ),
        ),
      ),
    ),
    el("p", { class: "aside small" }, printable(note)),
  );
}
