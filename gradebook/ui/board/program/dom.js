// Short ways to make elements.

const SVG = "http://www.w3.org/2000/svg";

export function html(tag, said = {}, ...children) {
  const made = document.createElement(tag);
  return dressed(made, said, children);
}

export function svg(tag, said = {}, ...children) {
  return dressed(document.createElementNS(SVG, tag), said, children);
}

function dressed(made, said, children) {
  set(made, said);
  made.append(...children);
  return made;
}

// Attributes; false and null leave one out. "text" is the text inside.
export function set(made, said) {
  for (const [name, value] of Object.entries(said)) {
    if (name === "text") {
      if (made.textContent !== value) made.textContent = value;
    } else if (value === false || value === null || value === undefined) {
      if (made.hasAttribute(name)) made.removeAttribute(name);
    } else {
      const text = value === true ? "" : String(value);
      if (made.getAttribute(name) !== text) made.setAttribute(name, text);
    }
  }
  return made;
}

// A sentence with `code` between backticks, as nodes.
export const prose = (text) =>
  text.split("`").map((part, n) => (n % 2 ? html("code", { text: part }) : part));

// The children of `parent` by key: made once, kept, and taken out when
// nobody asks for them any more.
export class Kept {
  constructor(parent) {
    this.parent = parent;
    this.all = new Map();
  }

  get(key, make) {
    if (!this.all.has(key)) {
      const made = make();
      this.all.set(key, made);
      this.parent.append(made);
    }
    return this.all.get(key);
  }

  keep(wanted) {
    for (const [key, made] of this.all)
      if (!wanted.has(key)) {
        made.remove();
        this.all.delete(key);
      }
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
