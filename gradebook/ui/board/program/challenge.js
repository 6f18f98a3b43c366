// The challenge: one line at the foot of the board, with its state and the number
// that decides it. On a phone it is in the sheet, with a slider for the one value
// that it lets the reader edit.

import { button, html, prose, set } from "./dom.js";
import { capital } from "./lines.js";
import { alike } from "./memo.js";

/** @import { Board } from "./board.js" */
/** @import { Challenge } from "./types.js" */

export class ChallengeLine {
  /**
   * @param {Board} board
   * @param {{sheet: HTMLElement, frame: HTMLElement}} places  on a phone, and elsewhere
   */
  constructor(board, places) {
    this.board = board;
    this.places = places;
    this.line = html("div", { class: "line" });
    this.range = html("input", { type: "range" });
    this.about = html("span");
    this.slide = html("label", { class: "slide" }, this.about, this.range);
    this.whole = html("div", { class: "challenge" }, this.line, this.slide);
    /** @type {number | null} */
    this.hinted = null; // the challenge whose hint is shown
    /** @type {unknown} */
    this.drawn = null;
    /** @type {number | null} */
    this.slides = null; // the line whose value the slider moves
    /** @type {number | undefined} */
    this.gesture = undefined;
    this.range.addEventListener("input", () => this.slid());
    this.range.addEventListener("change", () => {
      this.gesture = undefined;
      board.finish();
    });
  }

  render() {
    const { data, layout, root } = this.board;
    const { challenge } = data;
    // In the sheet of a phone the question needs the room.
    this.whole.hidden = !challenge || (data.covered && layout.narrow);
    if (!challenge || this.whole.hidden) return;
    const home = layout.narrow && data.box ? this.places.sheet : this.places.frame;
    if (this.whole.parentNode !== home) home.append(this.whole);
    const now = [data.epoch, challenge, data.covered, this.hinted, layout.narrow];
    if (!alike(this.drawn, now)) {
      const focus = /** @type {HTMLElement | null} */ (root.activeElement);
      const name = focus && this.line.contains(focus) ? focus.dataset.act : "";
      this.drawn = now;
      this.line.replaceChildren(...(data.covered ? this.later(challenge) : this.now(challenge)));
      const same = name ? this.line.querySelector(`[data-act="${name}"]`) : null;
      if (same instanceof HTMLElement) same.focus();
    }
    this.slider(challenge.row ?? null);
  }

  /** @param {Challenge} challenge */
  later({ count }) {
    const some = count === 1 ? "one challenge" : `${count} challenges`;
    const when = this.board.data.box?.label ? "your prediction" : "the reveal";
    const text = `After ${when}: ${some} on this board`;
    return [html("p", { class: "quiet", text })];
  }

  /** @param {Challenge} challenge */
  now(challenge) {
    const { at, count, done, goal, allowed, hint } = challenge;
    const { insight, solved, shown, live, missing } = challenge;
    const { board } = this;
    /** @param {string} act */
    const put = (act) => () => {
      this.hinted = null;
      board.put({ do: act, gesture: undefined });
    };
    /**
     * @param {string} text
     * @param {() => void} act
     * @param {string} [title]
     */
    const link = (text, act, title) =>
      button({ class: "link", "data-act": text, text, title }, act);
    const hinted = this.hinted === at && !solved;
    const links = [];
    const hints = () => {
      this.hinted = at;
      this.render();
    };
    if (hinted)
      links.push(link("Show a solution", put("solution"), "Undo brings your batch back."));
    else if (!solved) links.push(link("Hint", hints));
    if (count > 1 && (solved || hinted || done[at])) links.push(link("Next", put("next")));
    const state = solved
      ? shown
        ? "shown"
        : "\u2713 solved"
      : done[at]
        ? "\u2713 solved before"
        : "not yet";
    const words = prose(solved && insight ? insight : goal);
    if (hinted) words.push(" ", html("span", { class: "hinted" }, ...prose(hint || allowed)));
    const past = done.filter(Boolean).length;
    const number = `Challenge ${at + 1} of ${count}`;
    const pill = html("span", {
      class: `pill${solved ? (shown ? " shown" : " solved") : ""}`,
      role: "status",
      title: missing || null,
      text: live ? `${state} \u00b7 ${live}` : state,
    });
    return [
      html("span", { class: "quiet", text: past ? `${number}, ${past} solved` : number }),
      html("p", { class: ["goal", hinted && "with-hint"], title: allowed }, ...words),
      pill,
      ...links,
    ];
  }

  /**
   * The slider stays the same element while a finger holds it.
   * @param {number | null} line
   */
  slider(line) {
    const { board } = this;
    this.slides = line;
    this.slide.hidden = line === null || !board.layout.narrow;
    if (line === null || this.slide.hidden || this.gesture !== undefined) return;
    const [min, max] = board.handleAxis.ends;
    const step = (max - min) / 200;
    const { title } = board.data.handles;
    const { row } = board.lines[line];
    set(this.range, { min, max, step, "aria-label": `${capital(title)} of row ${row}` });
    set(this.about, { text: `row ${row}\u2019s ${title}` });
    this.range.value = String(board.value(line) ?? 0);
  }

  slid() {
    if (this.slides === null) return;
    this.gesture ??= this.board.newGesture();
    this.board.type(this.slides, String(Number(this.range.value)), this.gesture);
  }
}
