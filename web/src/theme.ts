// Light or dark: the system's setting, unless the reader chooses another; print is always light.

import { button } from "./dom.ts";
import { forgetColours } from "./palette.ts";

const ORDER = ["auto", "light", "dark"] as const;
type Theme = (typeof ORDER)[number];
const KEPT = "crystalperf-theme";

export class Theming {
  readonly #views: (() => void)[] = [];
  #theme: Theme = kept();

  constructor() {
    this.#apply();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#notify());
    addEventListener("beforeprint", () => this.#apply("light"));
    addEventListener("afterprint", () => this.#apply());
  }

  /** Calls `view` after a change of theme, so that it redraws its canvas with the new colours. */
  subscribe(view: () => void): void {
    this.#views.push(view);
  }

  toggle(): HTMLButtonElement {
    const made = button(
      `Colours: ${this.#theme}`,
      () => {
        this.#theme = ORDER[(ORDER.indexOf(this.#theme) + 1) % ORDER.length] ?? "auto";
        made.textContent = `Colours: ${this.#theme}`;
        try {
          localStorage.setItem(KEPT, this.#theme);
        } catch {
          // A page opened from a file may have no storage; then the choice is kept until the page is closed.
        }
        this.#apply();
      },
      { class: "quiet theme" },
    );
    return made;
  }

  #apply(theme: Theme = this.#theme): void {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    this.#notify();
  }

  #notify(): void {
    forgetColours();
    for (const view of this.#views) view();
  }
}

function kept(): Theme {
  try {
    return ORDER.find((each) => each === localStorage.getItem(KEPT)) ?? "auto";
  } catch {
    return "auto";
  }
}
