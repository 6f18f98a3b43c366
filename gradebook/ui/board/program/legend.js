// What the marks mean: only those that are drawn.

import { sameGroups } from "./causes.js";
import { html, svg } from "./dom.js";
import { alike } from "./memo.js";

/** @import { Layout } from "./layout.js" */
/** @import { Data } from "./types.js" */

/** @type {Record<string, () => SVGElement>} */
const SIGNS = {
  correct: () => svg("circle", { cx: 8, cy: 8, r: 5.5, class: "correct mark" }),
  faulty: () => svg("path", { d: "M8,1 L15,8 L8,15 L1,8 Z", class: "faulty mark" }),
  bracket: () => svg("path", { d: "M12,1 H6 V15 H12", class: "bracket correct near" }),
  both: () => svg("path", { d: "M12,1 H6 V15 H12", class: "bracket both near" }),
  dashed: () => svg("path", { d: "M4,1 H10 V15 H4", class: "bracket faulty near" }),
  guess: () => svg("path", { d: "M8,1 L15,8 L8,15 L1,8 Z", class: "guess-sign" }),
  hollow: () => svg("circle", { cx: 8, cy: 8, r: 6, class: "hollow-sign" }),
  unlike: () => svg("circle", { cx: 8, cy: 8, r: 6, class: "unlike-sign" }),
  divisor: () => svg("path", { d: "M0,8 H15 M15,4 V12", class: "divisor both" }),
  arrow: () => svg("path", { d: "M1,8 H14 M10,4 L14,8 L10,12", class: "arrow-sign" }),
  window: () => svg("path", { d: "M2,2 V14 M8,2 V14 M14,2 V14", class: "window-sign" }),
  framed: () => svg("rect", { x: 2, y: 2, width: 12, height: 12, class: "window faulty" }),
  tick: () => svg("path", { d: "M8,2 V14", class: "tick" }),
  turn: () => svg("path", { d: "M8,0 V16", class: "turn" }),
  ghost: () => svg("circle", { cx: 8, cy: 8, r: 4, class: "ghost-sign" }),
};

/**
 * One of them beside words.
 * @param {string} name
 * @param {string} look
 */
export const sign = (name, look = "") =>
  svg("svg", { viewBox: "0 0 16 16", class: `sign ${look}`, "aria-hidden": "true" }, SIGNS[name]());

const BEFORE = "before the edits";

/**
 * @typedef {[sign: string, words: string]} Entry
 */

export class Legend {
  constructor() {
    this.element = html("div", { class: "legend" });
    /** @type {Entry[] | null} */
    this.entries = null;
  }

  /**
   * Nothing moves under a hand: the legend stays while a handle is held, and
   * keeps a place for the sign that comes with the first edit.
   * @param {Data} data
   * @param {Layout} layout
   * @param {number} times  how many times as long as they are divisors are drawn
   * @param {boolean} held
   */
  render(data, layout, times, held) {
    if (held && this.entries) return;
    const entries = entriesOf(data, layout, times);
    if (alike(this.entries, entries)) return;
    this.entries = entries;
    const edited = entries.some(([name]) => name === "ghost");
    this.element.replaceChildren(
      ...entries.map(([name, words]) => item(name, words)),
      ...(edited ? [] : [item("ghost", BEFORE, "item later")]),
    );
  }
}

/**
 * @param {string} name
 * @param {string} words
 * @param {string} look
 */
const item = (name, words, look = "item") =>
  html("span", { class: look }, sign(name), html("span", { text: words }));

/**
 * @param {Data} data
 * @param {Layout} layout
 * @param {number} times
 * @returns {Entry[]}
 */
function entriesOf(data, layout, times) {
  const causes = layout.compares ? data.causes : [];
  const [correct, faulty] = data.names;
  /** @type {Entry[]} */
  const shown = [["correct", correct]];
  if (!data.covered) shown.push(["faulty", faulty]);
  else if (data.box?.label && typeof data.box.choices[0]?.place === "number")
    shown.push(["guess", "your guess"]);
  if (data.legend && layout.compares) shown.push(...data.legend);
  const grouped = !data.lines && causes.some((c) => c.at.some((x) => x !== null));
  if (grouped) {
    const same = sameGroups(causes);
    shown.push([
      same ? "both" : "bracket",
      `compared with each other; the bracket is at the ${data.baseline}`,
    ]);
    if (!same && causes.length > 1) shown.push(["dashed", `the same, ${faulty}`]);
  }
  if (causes.some((c) => c.scale)) {
    const longer = times > 1 ? `, drawn ${times.toLocaleString("en")} times as long` : "";
    shown.push(["divisor", `divisor${longer}`]);
  }
  const says = data.lines ? [] : causes.map((c) => c.say);
  if (says[0]?.includes("0")) shown.push(["hollow", data.hollow]);
  if (says.length > 1 && says[0] !== says[1]) shown.push(["unlike", "counted by one engine only"]);
  if (data.second) shown.push(["arrow", "second normalization"]);
  if (data.panels.some((p) => p.ghosts)) shown.push(["ghost", BEFORE]);
  return shown;
}
