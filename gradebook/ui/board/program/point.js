// What a text below the board points at: the rows and the stage that it names are marked
// on the board while it has the pointer or the focus. A click brings them into sight.

/** @import { Board } from "./board.js" */

const TEXT = ".gb-point"; // see pointing() in ui/parts/words.py
const COMES = ["pointerover", "focusin"];
const GOES = ["pointerout", "focusout"];

export class Point {
  /** @param {Board} board */
  constructor(board) {
    this.board = board;
    /** @type {Set<number>} */
    this.rows = new Set();
    /** @type {number | null} */
    this.token = null; // the only one of a row
    this.stage = "";
    this.marked = false; // something on the board is
    this.listening = new AbortController();
    const { signal } = this.listening;
    for (const name of COMES)
      document.addEventListener(name, ({ target }) => this.at(target), { signal });
    for (const name of GOES) document.addEventListener(name, () => this.at(null), { signal });
    document.addEventListener("click", ({ target }) => this.follow(target), { signal });
    document.addEventListener(
      "keydown",
      ({ key, target }) => {
        if (key === "Enter") this.follow(target);
      },
      { signal },
    );
  }

  /**
   * The text under the pointer points, else one that has the focus.
   * @param {EventTarget | null} target
   */
  at(target) {
    const text = textOf(target) ?? textOf(document.activeElement);
    if (!text && !this.rows.size && !this.stage) return;
    const { rows = "", token = "", stage = "" } = text?.dataset ?? {};
    this.rows = new Set(rows.split(" ").filter(Boolean).map(Number));
    this.token = token ? Number(token) : null;
    this.stage = stage;
    this.render();
  }

  /**
   * The first row that is pointed at, or the stage, comes into sight.
   * @param {EventTarget | null} target
   */
  follow(target) {
    if (!textOf(target)) return;
    this.at(target);
    const marked = this.board.whole.querySelector("[data-pointed]");
    marked?.scrollIntoView({ block: "nearest", behavior: "instant" });
  }

  render() {
    const points = this.rows.size > 0 || this.stage !== "";
    if (!points && !this.marked) return;
    this.marked = points;
    const { whole, data } = this.board;
    const chapter = data.path?.chapters.find(({ stages }) =>
      stages.some(({ name }) => name === this.stage),
    );
    const names = new Set([this.stage, chapter?.stages[chapter.result].name]);
    const stages = [.../** @type {NodeListOf<HTMLElement>} */ (whole.querySelectorAll(".stage"))];
    const opened = stages.find((element) => element.dataset.stage === this.stage);
    const mark = opened ?? stages.find(({ dataset }) => names.has(dataset.stage));
    for (const element of stages)
      element.toggleAttribute("data-pointed", Boolean(this.stage) && element === mark);
    for (const line of /** @type {NodeListOf<HTMLElement>} */ (whole.querySelectorAll(".row")))
      line.toggleAttribute("data-pointed", this.isAbout(Number(line.dataset.line)));
  }

  /** @param {number} number  of a line */
  isAbout(number) {
    const { row, first, last } = this.board.lines[number];
    if (!this.rows.has(row)) return false;
    if (this.token === null || first === null) return true;
    return first <= this.token && this.token <= (last ?? first);
  }

  stop() {
    this.listening.abort();
  }
}

/**
 * The text that points, around what an event is about.
 * @param {EventTarget | null} target
 */
const textOf = (target) =>
  target instanceof Element ? /** @type {HTMLElement | null} */ (target.closest(TEXT)) : null;
