// The reveal, in stages. First the other lines step back, then the diamond of the
// line in question travels from the blue dot on the axis as it was, while its
// number counts. Then words; then, if a value is off the axis, the axis widens;
// then the other lines return with their diamonds, and the challenge comes.

import { ease, still } from "./glide.js";

/** @import { Board } from "./board.js" */

const BACK = 200; // ms: the other lines step back
const TRAVEL = 700; // ms: the diamond travels
const WORDS = 950; // ms from the start
const WIDEN = 1100;
const WIDENING = 600; // ms: the axis widens
const OTHERS = [1000, 1700]; // on the axis as it was, and after it has widened
const LAST = 400; // ms from the other lines to the challenge
const DONE = 9; // the last stage: all is there

export class Reveal {
  /**
   * @param {Board} board
   * @param {(share: number) => void} count  shows the number on its way
   */
  constructor(board, count) {
    this.board = board;
    this.count = count;
    this.stage = DONE;
    this.wide = true; // the axis is as wide as it has to be
    /** @type {number | undefined} */
    this.asked = undefined;
    this.start = 0;
    this.frame = 0;
    /** @type {[number, () => void][]} */
    this.steps = [];
  }

  get playing() {
    return this.stage < DONE;
  }

  /** The answer was asked for: the other lines step back until it is there. */
  ask() {
    if (still.matches) return;
    this.asked = performance.now();
    this.board.whole.dataset.stage = "0";
  }

  play() {
    const { board } = this;
    if (still.matches || document.hidden || !board.width) return this.finish();
    const off = board.data.panels.some(({ reach }) => reach[1] > reach[0]);
    const others = OTHERS[off ? 1 : 0];
    this.start = Math.max(this.asked ?? performance.now(), performance.now() - BACK);
    this.steps = [
      [BACK, () => this.to(1, TRAVEL)],
      [WORDS, () => this.to(2, 0)],
      ...(off ? [/** @type {[number, () => void]} */ ([WIDEN, () => this.widen()])] : []),
      [others, () => this.to(3, 0)],
      [others + LAST, () => this.finish()],
    ];
    this.wide = false;
    this.to(0, 0);
    this.step();
  }

  /**
   * @param {number} stage
   * @param {number} length
   */
  to(stage, length) {
    this.stage = stage;
    this.board.whole.dataset.stage = String(stage);
    this.board.render(length);
  }

  widen() {
    this.wide = true;
    this.board.render(WIDENING);
  }

  step() {
    if (!this.playing) return;
    const since = performance.now() - this.start;
    this.count(ease(Math.min(Math.max((since - BACK) / TRAVEL, 0), 1)));
    while (this.steps.length && this.steps[0][0] <= since) this.steps.shift()?.[1]();
    if (this.playing) this.frame = requestAnimationFrame(() => this.step());
  }

  /** All at once: at the end, after an edit, and for whoever wants no motion. */
  finish() {
    cancelAnimationFrame(this.frame);
    const before = this.stage;
    this.stage = DONE;
    this.wide = true;
    this.asked = undefined;
    delete this.board.whole.dataset.stage;
    if (before < DONE) {
      this.count(1);
      this.board.render(0);
    }
  }
}
