// Moves drawn marks from where they are to where they belong.

export const still = matchMedia("(prefers-reduced-motion: reduce)");

/**
 * @typedef {(at: number[]) => void} Draw
 * @typedef {object} Move
 * @property {number[]} from
 * @property {number[]} to
 * @property {number} start
 * @property {number} length
 * @property {Draw} draw
 */

export class Glide {
  constructor() {
    /** @type {Map<string, Move>} */
    this.moving = new Map();
    /** @type {Map<string, number[]>} */
    this.now = new Map(); // key -> the numbers drawn last
    /** @type {Set<string>} */
    this.asked = new Set(); // keys since the last sweep
    this.frame = 0;
  }

  /**
   * Draws the numbers `to` of this key within so many milliseconds. What
   * is new, or has another form, is there at once.
   * With no milliseconds nothing sets out, and what is on its way goes on to
   * where it belongs now: the reveal makes the page longer, and its new
   * scroll bar makes the board narrower.
   * @param {string} key
   * @param {number[]} to
   * @param {number} length
   * @param {Draw} draw
   */
  to(key, to, length, draw) {
    this.asked.add(key);
    const from = this.now.get(key);
    const going = this.moving.get(key);
    const fresh = !from || from.length !== to.length;
    if ((!length && !going) || still.matches || fresh || document.hidden) {
      this.moving.delete(key);
      this.now.set(key, to);
      draw(to);
      return;
    }
    if (!length || equal(going ? going.to : from, to)) {
      if (going) Object.assign(going, { to, draw });
      else draw(to);
      return;
    }
    this.moving.set(key, { from, to, draw, length, start: performance.now() });
    this.frame ||= requestAnimationFrame((time) => this.step(time));
  }

  /** @param {number} time */
  step(time) {
    this.frame = 0;
    for (const [key, move] of this.moving) {
      const share = Math.min(Math.max((time - move.start) / move.length, 0), 1);
      const eased = move.length > 200 ? ease(share) : share;
      const at = move.to.map((x, i) => move.from[i] + (x - move.from[i]) * eased);
      this.now.set(key, at);
      move.draw(at);
      if (share === 1) this.moving.delete(key);
    }
    if (this.moving.size) this.frame = requestAnimationFrame((next) => this.step(next));
  }

  /** Forgets the keys that nothing was drawn for since the last time. */
  sweep() {
    for (const key of this.now.keys())
      if (!this.asked.has(key)) {
        this.now.delete(key);
        this.moving.delete(key);
      }
    this.asked.clear();
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.moving.clear();
  }
}

/**
 * @param {number} x  from 0 to 1
 */
export const ease = (x) => (x < 0.5 ? 4 * x ** 3 : 1 - (2 - 2 * x) ** 3 / 2);

/**
 * @param {number[]} a
 * @param {number[]} b
 */
const equal = (a, b) => a.every((x, i) => x === b[i]);
