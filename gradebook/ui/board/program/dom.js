// Short ways to make elements.

const sheet = new CSSStyleSheet();
sheet.replaceSync(await (await fetch(new URL("board.css", import.meta.url))).text());
const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {Record<string, any>} Attributes  "text" is the text inside; false, null and
 * undefined leave one out, also of the words in a list
 */

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} attributes
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function html(tag, attributes = {}, ...children) {
  const element = set(document.createElement(tag), attributes);
  element.append(...children);
  return element;
}

/**
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} attributes
 * @param {(Node | string)[]} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = set(document.createElementNS(SVG, tag), attributes);
  element.append(...children);
  return element;
}

/**
 * Gives what is drawn below the root of a component its style.
 * @param {ShadowRoot} root
 */
export function style(root) {
  root.adoptedStyleSheets = [sheet];
}

/**
 * A button that does `act`.
 * @param {Attributes} attributes
 * @param {() => void} act
 * @param {(Node | string)[]} children
 */
export function button(attributes, act, ...children) {
  const element = html("button", { type: "button", ...attributes }, ...children);
  element.addEventListener("click", act);
  return element;
}

/**
 * Changes the attributes that are not so yet.
 * @template {Element} Some
 * @param {Some} element
 * @param {Attributes} attributes
 * @returns {Some}
 */
export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") {
      if (element.textContent !== value) element.textContent = value;
    } else if (value === false || value === null || value === undefined) {
      if (element.hasAttribute(name)) element.removeAttribute(name);
    } else {
      const words = Array.isArray(value) ? value.filter(Boolean).join(" ") : value;
      const text = value === true ? "" : String(words);
      if (element.getAttribute(name) !== text) element.setAttribute(name, text);
    }
  }
  return element;
}

/**
 * A sentence with `code` between backticks, as nodes.
 * @param {string} text
 */
export const prose = (text) =>
  text.split("`").map((part, n) => (n % 2 ? html("code", { text: part }) : part));

/**
 * The element of an event, if it is in such an element.
 * @param {Event} event
 * @param {string} selector
 */
export const within = (event, selector) =>
  event.target instanceof Element
    ? /** @type {HTMLElement | null} */ (event.target.closest(selector))
    : null;

/**
 * The children of an element by key: made once, kept, and swept out when nobody has
 * asked for them since the last sweep.
 */
export class Kept {
  /** @param {Element} parent */
  constructor(parent) {
    this.parent = parent;
    /** @type {Map<string, Element>} */
    this.all = new Map();
    /** @type {Set<string>} */
    this.asked = new Set();
  }

  /**
   * @template {Element} Some
   * @param {string} key
   * @param {() => Some} make
   * @returns {Some}
   */
  get(key, make) {
    this.asked.add(key);
    const kept = this.all.get(key);
    if (kept) return /** @type {Some} */ (kept);
    const element = make();
    this.all.set(key, element);
    this.parent.append(element);
    return element;
  }

  sweep() {
    for (const [key, element] of this.all)
      if (!this.asked.has(key)) {
        element.remove();
        this.all.delete(key);
      }
    this.asked.clear();
  }
}

let remembered = "";

/**
 * What the learner has done stays in the browser, and comes back with the next visit.
 * @param {string} progress
 */
export function remember(progress) {
  if (remembered === progress) return;
  remembered = progress;
  const life = progress ? 31536000 : 0;
  document.cookie = `gradebook=${progress};path=/;max-age=${life};SameSite=Lax`;
}
