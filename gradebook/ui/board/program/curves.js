// The two policies that train with Home's batch, as curves: one for each stop of the
// reward that is dragged.

import { Glide } from "./glide.js";
import { set, svg } from "./dom.js";

/**
 * @typedef {object} Course  what the faulty policy does at one stop, in thousandths
 * @property {number[]} mean
 * @property {number[][]} seeds
 *
 * @typedef {object} Right  Home's right half
 * @property {number[]} updates
 * @property {number[]} correct  the same at every stop
 * @property {Course[]} stops
 */

const MOVE = 220; // ms: the curve goes to another stop
const [WIDTH, HEIGHT] = [608, 270];
/** @param {number} x */
const update = (x) => 48 + 2.46 * x;
/** @param {number} x */
const chance = (x) => 226 - 0.188 * x;
/** @param {number} x */
export const inDigits = (x) => (x / 1000).toFixed(3);

/**
 * @param {number} x
 * @param {number} y
 * @param {string} text
 * @param {Record<string, any>} more
 */
const label = (x, y, text, more = {}) => svg("text", { x, y, text, ...more });
const MIDDLE = { "text-anchor": "middle" };
const EDGE = { "text-anchor": "end" };

export class Curves {
  /** @param {Right} data */
  constructor(data) {
    this.data = data;
    this.glide = new Glide();
    this.now = -1;
    /** @type {Set<number>} */
    this.visited = new Set();
    const viewBox = `0 0 ${WIDTH} ${HEIGHT}`;
    this.element = svg("svg", { viewBox, class: "half", role: "img" });
    this.trace = svg("path", { class: "home-trace" });
    this.seeds = svg("path", { class: "home-seeds" });
    this.faulty = svg("path", { class: "home-faulty" });
    this.rise = label(0, 0, "", { class: "faulty-text strong" });
    this.end = label(551, 0, "", { class: "strong faulty-text" });
    this.ruled();
    const last = lastOf(data.correct);
    this.element.append(
      this.trace,
      this.seeds,
      svg("path", { class: "home-correct", d: this.line(data.correct) }),
      this.faulty,
      this.rise,
      label(551, chance(last) + 5, inDigits(last), { class: "strong correct-text" }),
      this.end,
    );
  }

  ruled() {
    const title = "chance of success of two small policies, mean of 16 seeds";
    this.element.append(label(40, 16, title));
    for (const share of [0, 500, 1000]) {
      const y = chance(share);
      this.element.append(
        label(38, y + 4, String(share / 1000), EDGE),
        svg("line", { x1: 48, x2: 540, y1: y, y2: y, class: share ? "" : "zero" }),
      );
    }
    for (const tick of [0, 50, 100, 150, 200])
      this.element.append(label(update(tick), 242, String(tick), MIDDLE));
    const key = "updates \u00b7 thin lines: single seeds \u00b7 grey: rewards you tried earlier";
    this.element.append(label(294, 263, key, MIDDLE));
  }

  /** @param {number[]} values */
  line(values) {
    const at = values.map((value, n) => `${update(this.data.updates[n])},${chance(value)}`);
    return `M${at.join(" L")}`;
  }

  /**
   * Goes to the curve of a stop; the one before leaves a trace.
   * @param {number} stop
   */
  show(stop) {
    if (this.now >= 0) this.visited.add(this.now);
    this.visited.delete(stop);
    this.now = stop;
    const { stops, updates, correct } = this.data;
    const { mean, seeds } = stops[stop];
    set(this.trace, { d: [...this.visited].map((n) => this.line(stops[n].mean)).join(" ") });
    set(this.seeds, { d: seeds.map((values) => this.line(values)).join(" ") });
    this.glide.to("curve", mean, MOVE, (now) => set(this.faulty, { d: this.line(now) }));
    const [last, peak] = [lastOf(mean), Math.max(...mean)];
    set(this.rise, {
      x: update(updates[mean.indexOf(peak)]) + 14,
      y: chance(peak) - 8,
      text: peak - last > 200 ? `rises to ${(peak / 1000).toFixed(2)}` : "",
    });
    const ahead = last - lastOf(correct);
    const aside = Math.abs(ahead) >= 60 ? 5 : ahead > 0 ? -10 : 20; // no label on another
    set(this.end, { y: chance(last) + aside, text: inDigits(last) });
    const ends = `correct ${inDigits(lastOf(correct))}, faulty ${inDigits(last)}`;
    set(this.element, { "aria-label": `Chance of success after 200 updates: ${ends}` });
  }
}

/** @param {number[]} values */
export const lastOf = (values) => values[values.length - 1];
