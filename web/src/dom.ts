// The only module that creates elements.  Every text becomes a text node; nothing is parsed as HTML.

export type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined>;

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; `class` may be empty; false, null and undefined omit an attribute. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled<E extends Element>(element: E, attributes: Attributes, children: readonly Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    // A handler or style attribute would be code or style from data; the page's policy blocks both.
    if (name === "style" || name.startsWith("on")) throw new Error(`no attribute ${name}: use a property`);
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

export function append(parent: Node, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Replaces all children of an element. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

/** A button that calls `act`. */
export function button(label: string, act: () => void, attributes: Attributes = {}): HTMLButtonElement {
  const made = el("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
}

/** A button that copies a text and briefly shows that it did. */
export function copier(text: () => string, label = "Copy"): HTMLButtonElement {
  const made = button(
    label,
    () => {
      void copied(text()).then((done) => {
        made.textContent = done ? "Copied" : "Select and copy";
        setTimeout(() => {
          made.textContent = label;
        }, 1500);
      });
    },
    { class: "copy", "aria-live": "polite" },
  );
  return made;
}

async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A page opened from a file may have no clipboard API; `execCommand` works there.
    const field = el("textarea", { class: "off-screen", "aria-hidden": "true" });
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}
