// Light or dark: as the system says, unless the reader says otherwise; paper is always light.

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
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#tell());
    addEventListener("beforeprint", () => this.#apply("light"));
    addEventListener("afterprint", () => this.#apply());
  }

  /** A view that draws on a canvas reads its colours anew. */
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
          // Storage may be closed to a page that is a file; the choice then holds until the page is left.
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
    this.#tell();
  }

  #tell(): void {
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
