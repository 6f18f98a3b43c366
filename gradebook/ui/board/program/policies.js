// Both engines' training curves with a slider under them, and beside them what both
// policies say at the update that the slider shows. All stops are here from the
// start, so the slider asks the server for nothing.

import { button, html, set, style, svg } from "./dom.js";
import { follow, STEPS } from "./drag.js";
import { BIG, DIAMOND } from "./marks.js";
import { bothAnswers, dress } from "./words.js";

/** @import { Answer, Prompt } from "./words.js" */

/**
 * @typedef {object} Trained  shares are in thousandths
 * @property {(string | number)[]} key  which run this is
 * @property {string[]} names  of the engines: correct, faulty
 * @property {string} axis  what the curves are
 * @property {number[]} updates
 * @property {number} most  the last update, also while the run has not come so far
 * @property {boolean} grows  it still trains, and the slider follows it until it is moved
 * @property {number[][]} means  by engine
 * @property {number[][][]} seeds  by engine and seed
 * @property {Record<string, string>} headlines  by update
 * @property {Record<string, Answer[][]>} words  by update, engine and prompt
 * @property {Prompt[]} prompts
 * @property {Record<string, string>} notes  by update: how many of all answers do not end
 * @property {string} note  what the prompts are
 */

const [LEFT, RIGHT, TOP, BOTTOM] = [34, 14, 26, 8]; // of the chart, in pixels
/** @type {["correct", "faulty"]} */
const ENGINES = ["correct", "faulty"];
const MARKS = 5; // on a curve
const SHOWN = 3; // prompts at a time
const LABELS = 5; // of the slider's stops, at most
/** @param {number} thousandths */
const share = (thousandths) => (thousandths / 1000).toFixed(2);

/** @type {WeakMap<ShadowRoot, Policies>} */
const mounted = new WeakMap();

/** @param {{ data: Trained[], parentElement: ShadowRoot }} component */
export function draw({ data: [data], parentElement: root }) {
  const policies = mounted.get(root) ?? new Policies(root, data);
  mounted.set(root, policies);
  policies.take(data);
}

class Policies {
  /**
   * @param {ShadowRoot} root
   * @param {Trained} data
   */
  constructor(root, data) {
    style(root);
    dress(root);
    this.data = data;
    /** @type {number[]} the updates with words */
    this.stops = [];
    this.at = 0;
    /** @type {number | null} */
    this.chosen = null;
    this.first = 0; // prompt
    this.width = this.height = 0;
    this.headline = html("h3", { "aria-live": "polite" });
    this.chart = svg("svg", { class: "curves", role: "img" });
    this.marked = html("div");
    this.knob = html("div", {
      class: "knob",
      role: "slider",
      tabindex: 0,
      "aria-label": "After how many updates",
    });
    this.rail = html("div", { class: "stops" }, this.marked, this.knob);
    this.title = html("h3");
    this.answers = html("div");
    this.other = button({}, () => this.turn(), "Three other prompts");
    this.all = html("p", { class: "all" });
    this.note = html("span");
    const foot = html("p", { class: "foot" }, this.note, " ", this.other);
    root.replaceChildren(
      html(
        "div",
        { class: "board policies" },
        html("div", {}, this.headline, this.chart, this.rail),
        html("div", { class: "words" }, this.title, this.answers, this.all, foot),
      ),
    );
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.chart);
  }

  listen() {
    this.knob.addEventListener("keydown", (event) => {
      /** @type {Record<string, number>} */
      const ends = { Home: 0, End: this.stops.length - 1 };
      const now = this.stops.indexOf(this.at) + (STEPS[event.key] ?? NaN);
      const next = ends[event.key] ?? Math.min(Math.max(now, 0), this.stops.length - 1);
      if (Number.isNaN(next)) return;
      event.preventDefault();
      this.choose(this.stops[next]);
    });
    /** @param {PointerEvent} event */
    const nearest = ({ clientX }) => {
      const x = clientX - this.chart.getBoundingClientRect().left;
      const far = this.stops.map((stop) => Math.abs(this.x(stop) - x));
      this.choose(this.stops[far.indexOf(Math.min(...far))]);
    };
    for (const target of [this.rail, this.chart])
      target.addEventListener("pointerdown", (event) => {
        if (!(event instanceof PointerEvent) || event.button) return;
        event.preventDefault();
        this.knob.focus({ preventScroll: true });
        nearest(event);
        follow(target, event, nearest, () => {});
      });
  }

  /** @param {Trained} data */
  take(data) {
    if (String(this.data.key) !== String(data.key)) this.chosen = null; // another run
    this.data = data;
    this.stops = Object.keys(data.words).map(Number);
    if (this.chosen !== null && !this.stops.includes(this.chosen)) this.chosen = null;
    this.at = this.chosen ?? this.stops[this.stops.length - 1];
    if (this.first >= data.prompts.length) this.first = 0;
    this.draw();
  }

  /** @param {number} stop */
  choose(stop) {
    if (stop === this.at) return;
    this.chosen = this.at = stop;
    this.draw();
  }

  turn() {
    this.first = (this.first + SHOWN) % this.data.prompts.length;
    this.draw();
  }

  /** @param {number} update */
  x(update) {
    return LEFT + ((this.width - LEFT - RIGHT) * update) / this.data.most;
  }

  /** @param {number} thousandths */
  y(thousandths) {
    return TOP + (this.height - TOP - BOTTOM) * (1 - thousandths / 1000);
  }

  draw() {
    const { data, at } = this;
    this.width = this.chart.clientWidth || 560;
    this.height = this.width < 480 ? 240 : 330;
    set(this.chart, { viewBox: `0 0 ${this.width} ${this.height}`, height: this.height });
    set(this.headline, { text: data.headlines[at] });
    set(this.title, { text: `What both policies say after ${at} updates` });
    set(this.all, { text: data.notes[at] });
    set(this.note, { text: data.note });
    this.curves();
    this.slider();
    const shown = data.prompts.slice(this.first, this.first + SHOWN);
    const words = data.words[at];
    this.answers.replaceChildren(
      ...shown.map((prompt, n) => {
        const answers = words.map((of) => of[this.first + n]);
        return bothAnswers(prompt, answers, data.names);
      }),
    );
  }

  /** @param {number[]} values */
  line(values) {
    const { updates } = this.data;
    return `M${values.map((value, n) => `${this.x(updates[n])},${this.y(value)}`).join(" L")}`;
  }

  curves() {
    const { data, at } = this;
    /** @type {SVGElement[]} */
    const drawn = [svg("text", { x: 0, y: 12, text: data.axis })];
    for (const tick of [0, 200, 400, 600, 800, 1000]) {
      const y = this.y(tick);
      const ends = { x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y };
      drawn.push(
        svg("line", { ...ends, class: tick ? "" : "zero" }),
        svg("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end", text: String(tick / 1000) }),
      );
    }
    ENGINES.forEach((engine, e) => {
      const seeds = data.seeds[e].map((values) => this.line(values)).join(" ");
      drawn.push(svg("path", { class: `seed ${engine}`, d: seeds }));
    });
    const x = this.x(at);
    drawn.push(svg("line", { class: "at", x1: x, x2: x, y1: TOP, y2: this.height }));
    ENGINES.forEach((engine, e) => {
      drawn.push(svg("path", { class: `mean ${engine}`, d: this.line(data.means[e]) }));
      drawn.push(...this.marks(engine, data.means[e]));
    });
    this.chart.replaceChildren(...drawn, ...this.numbers());
    const last = data.means.map((mean, e) => `${data.names[e]} ${share(mean[mean.length - 1])}`);
    const updates = data.updates[data.updates.length - 1];
    const text = `${data.axis}: after ${updates} updates ${last.join(", ")}.`;
    set(this.chart, { "aria-label": text });
  }

  /**
   * @param {"correct" | "faulty"} engine
   * @param {number[]} mean
   * @returns {SVGElement[]}
   */
  marks(engine, mean) {
    const { updates } = this.data;
    const now = updates.indexOf(this.at);
    const every = Math.max(1, Math.round(updates.length / MARKS));
    const places = updates.map((_, n) => n).filter((n) => n === now || (n && n % every === 0));
    return places.map((n) => {
      const [x, y] = [this.x(updates[n]), this.y(mean[n])];
      const large = n === now;
      if (engine === "correct")
        return svg("circle", { class: "correct", cx: x, cy: y, r: large ? 7 : 4 });
      const place = `translate(${x} ${y})${large ? "" : " scale(0.8)"}`;
      return svg("path", { class: "mark faulty", d: large ? BIG : DIAMOND, transform: place });
    });
  }

  // Both means at the chosen update with their engines' names, beside the line and
  // apart from each other, and above a curve that runs along the bottom.
  numbers() {
    const { data, at } = this;
    const values = data.means.map((mean) => mean[data.updates.indexOf(at)]);
    const left = this.x(at) > this.width - 150;
    const [x, anchor] = left ? [this.x(at) - 14, "end"] : [this.x(at) + 14, "start"];
    const upper = values[0] >= values[1] ? 0 : 1;
    return values.map((value, e) => {
      const fits = this.y(value) + 22 < this.height - BOTTOM;
      const y = this.y(value) + (e === upper || !fits ? -10 : 22);
      const look = `strong ${ENGINES[e]}-text`;
      const text = `${data.names[e]} ${share(value)}`;
      return svg("text", { x, y: Math.max(y, TOP + 2), "text-anchor": anchor, class: look, text });
    });
  }

  slider() {
    const { data, at, stops } = this;
    /** @param {number} update */
    const place = (update) => `left:${this.x(update)}px`;
    const labels = stops.length > LABELS || data.grows ? [0, at, data.most] : stops;
    set(this.knob, {
      style: place(at),
      "aria-valuemin": stops[0],
      "aria-valuemax": stops[stops.length - 1],
      "aria-valuenow": at,
      "aria-valuetext": `${at} updates`,
    });
    this.marked.replaceChildren(
      html("div", { class: "rail", style: `left:${LEFT}px;right:${RIGHT}px` }),
      ...stops.map((stop) => html("div", { class: "stop", style: place(stop) })),
      ...[...new Set(labels)].map((stop) =>
        html("b", { style: place(stop), class: stop === at && "now", text: String(stop) }),
      ),
    );
  }
}
