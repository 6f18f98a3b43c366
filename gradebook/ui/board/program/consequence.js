// Home's right half: how the policy of each stop of the dragged reward trains, and what
// it says at the end.

import { html, set, svg } from "./dom.js";
import { Glide } from "./glide.js";
import { answerOf } from "./words.js";

/** @import { Answer, Prompt } from "./words.js" */

/**
 * @typedef {object} Course  the faulty policy at one stop; shares are in thousandths
 * @property {number[]} mean
 * @property {number[][]} seeds
 * @property {Answer} answer  what it says to the prompt after the last update
 * @property {string} says  what both policies have learnt
 *
 * @typedef {object} Right  Home's right half
 * @property {number[]} updates
 * @property {number[]} correct  the same at every stop
 * @property {Course[]} stops
 * @property {Prompt} prompt
 * @property {string[]} names  of the engines
 * @property {string} solved  what the last value of a curve is
 * @property {string} axis  what the curves are
 */

const MOVE = 220; // ms: the curve goes to another stop
const RISE = 200; // thousandths: a curve that has fallen so far says how high it was
const APART = 110; // thousandths: nearer numbers would be written on each other
const [WIDTH, HEIGHT] = [608, 188];
/** @param {number} thousandths */
const y = (thousandths) => 144 - 0.132 * thousandths;
/** @param {number} thousandths */
export const inDigits = (thousandths) => (thousandths / 1000).toFixed(3);
/** @param {number[]} values */
export const lastOf = (values) => values[values.length - 1];

/**
 * @param {number} x
 * @param {number} y
 * @param {string} text
 * @param {Record<string, any>} more
 */
const label = (x, y, text, more = {}) => svg("text", { x, y, text, ...more });

export class Consequence {
  /** @param {Right} data */
  constructor(data) {
    this.data = data;
    this.glide = new Glide();
    this.now = -1;
    /** @type {Set<number>} */
    this.visited = new Set();
    const viewBox = `0 0 ${WIDTH} ${HEIGHT}`;
    this.chart = svg("svg", { viewBox, class: "curves home-curves", role: "img" });
    this.trace = svg("path", { class: "trace" });
    this.seeds = svg("path", { class: "seed faulty" });
    this.faulty = svg("path", { class: "mean faulty" });
    this.rise = label(0, 0, "", { class: "strong faulty-text" });
    this.ends = ["correct", "faulty"].map((engine) =>
      label(551, 0, "", { class: `strong ${engine}-text` }),
    );
    this.ruled();
    this.chart.append(
      this.trace,
      this.seeds,
      svg("path", { class: "mean correct", d: this.line(data.correct) }),
      this.faulty,
      this.rise,
      ...this.ends,
    );
    this.answer = html("div");
    this.says = html("p", { class: "says" });
    this.element = html(
      "div",
      { class: "home-right" },
      html("p", { class: "axis", text: data.axis }),
      this.chart,
      html(
        "div",
        { class: "home-words" },
        html(
          "header",
          {},
          html("code", { text: data.prompt.text }),
          html("span", { text: data.prompt.expected }),
        ),
        this.answer,
        this.says,
      ),
    );
  }

  /** @param {number} update */
  x(update) {
    return 48 + (492 * update) / lastOf(this.data.updates);
  }

  ruled() {
    for (const share of [0, 500, 1000]) {
      const ends = { x1: 48, x2: 540, y1: y(share), y2: y(share) };
      this.chart.append(
        label(38, y(share) + 4, String(share / 1000), { "text-anchor": "end" }),
        svg("line", { ...ends, class: share ? "" : "zero" }),
      );
    }
    const middle = { "text-anchor": "middle" };
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      const tick = part * lastOf(this.data.updates);
      this.chart.append(label(this.x(tick), 160, String(tick), middle));
    }
    const key = "updates \u00b7 thin lines: single seeds \u00b7 grey: rewards you tried earlier";
    this.chart.append(label(294, 180, key, middle));
  }

  /** @param {number[]} values */
  line(values) {
    const at = values.map((value, n) => `${this.x(this.data.updates[n])},${y(value)}`);
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
    const { stops, updates, names } = this.data;
    const { mean, seeds, answer, says } = stops[stop];
    set(this.trace, { d: [...this.visited].map((n) => this.line(stops[n].mean)).join(" ") });
    set(this.seeds, { d: seeds.map((values) => this.line(values)).join(" ") });
    this.glide.to("curve", mean, MOVE, (now) => set(this.faulty, { d: this.line(now) }));
    const peak = Math.max(...mean);
    const first = mean.indexOf(peak);
    const rises = first > 0 && peak - lastOf(mean) > RISE;
    set(this.rise, {
      x: this.x(updates[first]) + 14,
      y: y(peak) - 8,
      text: rises ? `rises to ${(peak / 1000).toFixed(2)}` : "",
    });
    this.numbers(mean);
    this.answer.replaceChildren(answerOf("faulty", answer, names[1]));
    set(this.says, { text: says });
  }

  /** @param {number[]} mean */
  numbers(mean) {
    const { correct, names, axis } = this.data;
    const last = [lastOf(correct), lastOf(mean)];
    const ahead = last[0] - last[1];
    const away = Math.abs(ahead) >= APART ? 0 : Math.sign(ahead) || 1;
    this.ends.forEach((end, e) => {
      const aside = 5 + away * (e ? 8 : -8);
      set(end, { y: y(last[e]) + aside, text: inDigits(last[e]) });
    });
    const ends = last.map((value, e) => `${names[e]} ${inDigits(value)}`).join(", ");
    set(this.chart, { "aria-label": `${axis}: at the end ${ends}` });
  }
}
