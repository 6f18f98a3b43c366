// The guess: an empty diamond that is dragged along the axis of the result,
// from the blue dot of the line in question. The buttons in the box are the same
// guess. After the answer the diamond stays, grey.

import { follow, STEPS } from "./drag.js";
import { html, set, svg } from "./dom.js";
import { BIG } from "./marks.js";
import { signed } from "./scale.js";

/** @import { Board } from "./board.js" */
/** @import { Choice } from "./types.js" */

const STICKY = 7; // pixels around 0 and the blue dot within which the guess is there

export class Guess {
  /** @param {Board} board */
  constructor(board) {
    this.board = board;
    /** @type {number | null} */
    this.choice = null;
    /** @type {number | null} */
    this.place = null;
    this.line = svg("path", { class: "way" });
    this.text = svg("text", { class: "place" });
    this.shape = svg("path", { d: BIG });
    this.arrows = svg("path", {
      class: "arrows",
      d: "M-14,-4 L-19,0 L-14,4 M14,-4 L19,0 L14,4",
    });
    this.mark = svg("g", {}, this.arrows, this.shape);
    this.layer = svg("g", { class: "guess" }, this.line, this.mark, this.text);
    board.over.append(this.layer);
    this.hand = html("div", { class: "guess-hand", role: "slider", tabindex: 0 });
    // A table holds rows of cells, and nothing else.
    this.holder = html("div", { role: "row" }, html("div", { role: "cell" }, this.hand));
    board.body.append(this.holder);
    this.hand.addEventListener("pointerdown", (event) => this.hold(event));
    this.hand.addEventListener("keydown", (event) => this.key(event));
  }

  forget() {
    this.choice = null;
    this.place = null;
  }

  get choices() {
    return this.board.data.box?.choices ?? [];
  }

  /**
   * A choice by its button.
   * @param {number} choice
   */
  choose(choice) {
    this.choice = choice;
    this.place = this.choices[choice].place;
    this.board.render(0);
  }

  /**
   * Puts the guess at a value of the axis; the choice follows.
   * @param {number} value
   */
  put(value) {
    /** @param {[number | null, number | null]} region */
    const inside = ([low, high]) => value >= (low ?? -Infinity) && value <= (high ?? Infinity);
    const at = this.axis.at(value);
    const distances = this.choices.map(({ place }) =>
      place === null ? Infinity : Math.abs(this.axis.at(place) - at),
    );
    const byRegion = this.choices.findIndex(({ region }) => region && inside(region));
    this.place = value;
    const byDistance = distances.indexOf(Math.min(...distances));
    this.choice = byRegion >= 0 ? byRegion : byDistance;
    this.board.render(0);
  }

  /** @param {PointerEvent} event */
  hold(event) {
    if (event.button) return;
    event.preventDefault();
    this.hand.focus({ preventScroll: true });
    const left = this.board.body.getBoundingClientRect().left;
    const offset = event.clientX - left - this.axis.at(this.value);
    /** @param {PointerEvent} now */
    const move = (now) => this.put(this.snapped(now.clientX - left - offset));
    follow(this.hand, event, move, () => {});
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const { axis, beyond: limit } = this;
    const pixels = ((axis.right - axis.left) / 80) * (event.shiftKey ? 10 : 1);
    const grain = axis.unit ? 0 : this.board.reachBefore / (event.shiftKey ? 4 : 40);
    const next = grain
      ? Math.round(this.value / grain + step) * grain
      : axis.snapped(axis.at(this.value) + step * pixels);
    this.put(Math.min(Math.max(next, -limit), limit));
  }

  get axis() {
    return this.board.panels[this.board.data.numbers];
  }

  get correct() {
    const { data, lineInQuestion } = this.board;
    return data.panels[data.numbers].engines[0][lineInQuestion] ?? 0;
  }

  get value() {
    return this.place ?? this.correct;
  }

  /** A guess past the end of the axis. */
  get beyond() {
    return this.board.reachBefore * 1.07;
  }

  /** @param {number} pixels */
  snapped(pixels) {
    const { axis, correct } = this;
    const reach = this.board.reachBefore;
    for (const sticky of [0, correct])
      if (Math.abs(axis.at(sticky) - pixels) < STICKY) return sticky;
    const value = axis.snapped(pixels);
    return Math.abs(value) > reach ? Math.sign(value) * this.beyond : value;
  }

  render() {
    const { data, layout, shown, lineInQuestion: line } = this.board;
    const { box } = data;
    const isAsked = Boolean(box?.label && data.covered && hasPlace(box.choices[0]));
    // What was said of the report's batch is not about an edited one.
    const isEdited = data.edited && !box?.otherBatch;
    const isAnswered = Boolean(box && !data.covered && box.place !== null && !isEdited);
    const isInView = (isAsked || isAnswered) && line >= shown[0] && line < shown[1];
    set(this.layer, {
      class: `guess${isAnswered ? " known" : ""}`,
      visibility: isInView ? null : "hidden",
    });
    this.holder.hidden = this.hand.hidden = !isAsked || !isInView;
    if (!isInView || !box) return;
    const value = isAnswered ? (box.place ?? 0) : this.value;
    const at = this.axis.at(value);
    const y = (line + 0.5) * layout.line;
    const blue = this.axis.at(this.correct);
    const words = isAnswered ? "you" : this.place === null ? "" : this.words(value);
    set(this.mark, { transform: `translate(${at} ${y})` });
    set(this.arrows, { visibility: isAsked && this.place === null ? null : "hidden" });
    set(this.line, { d: isAsked && Math.abs(at - blue) > 14 ? `M${at},${y} H${blue}` : "" });
    const side = this.side(at, 15 + 8 * words.length, isAnswered);
    set(this.text, {
      x: at + 15 * side,
      y: y + (side ? 4 : line ? -12 : 20),
      "text-anchor": ["end", "middle", "start"][side + 1],
      text: words,
    });
    if (!isAsked) return;
    this.hand.style.transform = `translate(${at}px, ${y}px)`;
    const token = box.token === null || box.token === undefined ? "" : `, token ${box.token}`;
    set(this.hand, {
      "aria-label": `Your guess for row ${box.row}${token}`,
      "aria-valuemin": -this.beyond,
      "aria-valuemax": this.beyond,
      "aria-valuenow": value,
      "aria-valuetext": this.words(value),
    });
  }

  /**
   * The side of the diamond on which words of this length cover no mark: 1 is right,
   * -1 is left; 0 is above or below it, if no side has room.
   * @param {number} at
   * @param {number} length
   * @param {boolean} isAnswered
   */
  side(at, length, isAnswered) {
    const { data, layout, lineInQuestion } = this.board;
    const marks = data.panels[data.numbers].engines.map((side) =>
      this.axis.at(side[lineInQuestion] ?? 0),
    );
    const [before, after] = layout.narrow ? [0, 0] : [64, 40]; // beside the axis
    const { left, right } = this.axis;
    /** @param {number} side */
    const edge = (side) => (side < 0 ? at - left + before : right + after - at);
    /** @param {number} side */
    const room = (side) =>
      Math.min(edge(side), ...marks.map((x) => (x - at) * side).filter((far) => far > 8));
    const roomier = isAnswered ? 0 : Math.sign(edge(1) - edge(-1));
    return [1, -1].find((side) => room(side) >= length) ?? roomier;
  }

  /** @param {number} value */
  words(value) {
    const reach = this.board.reachBefore;
    if (Math.abs(value) > reach) return `beyond ${value < 0 ? "\u2212" : "+"}${reach}`;
    return signed(value, reach < 0.5 ? 4 : 2);
  }
}

/** @param {Choice | undefined} choice */
const hasPlace = (choice) => typeof choice?.place === "number";
