// The button that names the chosen stages and shows all again; so does Escape.

import { button } from "./dom.ts";
import type { Store } from "./store.ts";

/** A button that is visible while some stages are chosen. */
export function choiceChip(store: Store): HTMLButtonElement {
  const chip = button("", () => store.set({ choice: null }), { class: "chip", hidden: true });
  store.onChoice((choice) => {
    chip.hidden = choice === null;
    chip.textContent = choice ? `Only ${choice.label}  ×` : "";
    chip.setAttribute("aria-label", choice ? `Only ${choice.label} is shown: show all` : "");
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && store.now.choice) store.set({ choice: null });
  });
  return chip;
}
