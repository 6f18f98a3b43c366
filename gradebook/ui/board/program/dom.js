// Short ways to make elements.

const sheet = new CSSStyleSheet();
sheet.replaceSync(await (await fetch(new URL("board.css", import.meta.url))).text());
const SVG = "http://www.w3.org/2000/svg";

const maker =
  (create) =>
  (tag, said = {}, ...children) => {
    const made = set(create(tag), said);
    made.append(...children);
    return made;
  };
export const html = maker((tag) => document.createElement(tag));
export const svg = maker((tag) => document.createElementNS(SVG, tag));

// Gives what is drawn below the root of a component its style.
export function style(root) {
  root.adoptedStyleSheets = [sheet];
}

// A button that does `act`.
export function button(said, act, ...children) {
  const made = html("button", { type: "button", ...said }, ...children);
  made.addEventListener("click", act);
  return made;
}

// Attributes; false and null leave one out, also of the words in a list. "text" is
// the text inside.
export function set(made, said) {
  for (const [name, value] of Object.entries(said)) {
    if (name === "text") {
      if (made.textContent !== value) made.textContent = value;
    } else if (value === false || value === null || value === undefined) {
      if (made.hasAttribute(name)) made.removeAttribute(name);
    } else {
      const words = Array.isArray(value) ? value.filter(Boolean).join(" ") : value;
      const text = value === true ? "" : String(words);
      if (made.getAttribute(name) !== text) made.setAttribute(name, text);
    }
  }
  return made;
}

// A sentence with `code` between backticks, as nodes.
export const prose = (text) =>
  text.split("`").map((part, n) => (n % 2 ? html("code", { text: part }) : part));

// The children of `parent` by key: made once, kept, and swept out when nobody has
// asked for them since the last sweep.
export class Kept {
  constructor(parent) {
    this.parent = parent;
    this.all = new Map();
    this.asked = new Set();
  }

  get(key, make) {
    this.asked.add(key);
    if (!this.all.has(key)) {
      this.all.set(key, make());
      this.parent.append(this.all.get(key));
    }
    return this.all.get(key);
  }

  sweep() {
    for (const [key, made] of this.all)
      if (!this.asked.has(key)) {
        made.remove();
        this.all.delete(key);
      }
    this.asked.clear();
  }
}

// What the learner has done stays in the browser, and comes back with the next
// visit.
export function remember(progress) {
  if (remember.last === progress) return;
  remember.last = progress;
  const life = progress ? 31536000 : 0;
  document.cookie = `gradebook=${progress};path=/;max-age=${life};SameSite=Lax`;
}
