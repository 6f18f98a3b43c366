// Both engines' training curves with a slider under them, and beside them what both
// policies say at the update that the slider shows. All stops are here from the
// start, so the slider asks the server for nothing.

import { button, html, set, style, svg } from "./dom.js";
import { follow, STEPS } from "./drag.js";
import { BIG, DIAMOND } from "./marks.js";
import { said } from "./words.js";

const sheet = new CSSStyleSheet();
sheet.replaceSync(await (await fetch(new URL("policies.css", import.meta.url))).text());

const [LEFT, RIGHT, TOP, BOTTOM] = [34, 14, 26, 8]; // of the chart, in pixels
const ENGINES = ["correct", "faulty"];
const MARKS = 5; // on a curve
const SHOWN = 3; // prompts at a time
const share = (thousandths) => (thousandths / 1000).toFixed(2);

// data: {key, names, updates, most, means, seeds, headlines and words by update,
// prompts, note, grows}. `grows`: the run is still training, and the slider
// follows it until somebody moves it.
export function draw({ data: [data], parentElement: root }) {
  root.policies ??= new Policies(root);
  root.policies.take(data);
}

class Policies {
  constructor(root) {
    style(root);
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
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
    this.note = html("span");
    root.replaceChildren(
      html(
        "div",
        { class: "board policies" },
        html("div", {}, this.headline, this.chart, this.rail),
        html(
          "div",
          { class: "words" },
          this.title,
          this.answers,
          html("p", { class: "foot" }, this.note, " ", this.other),
        ),
      ),
    );
    this.first = 0; // prompt
    this.listen();
    new ResizeObserver(() => this.data && this.draw()).observe(this.chart);
  }

  listen() {
    this.knob.addEventListener("keydown", (event) => {
      const ends = { Home: 0, End: this.stops.length - 1 };
      const now = this.stops.indexOf(this.at) + (STEPS[event.key] ?? NaN);
      const next = ends[event.key] ?? Math.min(Math.max(now, 0), this.stops.length - 1);
      if (Number.isNaN(next)) return;
      event.preventDefault();
      this.choose(this.stops[next]);
    });
    const nearest = ({ clientX }) => {
      const x = clientX - this.chart.getBoundingClientRect().left;
      const far = this.stops.map((stop) => Math.abs(this.x(stop) - x));
      this.choose(this.stops[far.indexOf(Math.min(...far))]);
    };
    const held = (event) => {
      if (event.button) return;
      event.preventDefault();
      this.knob.focus({ preventScroll: true });
      nearest(event);
      follow(event.currentTarget, event, nearest, () => {});
    };
    this.rail.addEventListener("pointerdown", held);
    this.chart.addEventListener("pointerdown", held);
  }

  take(data) {
    const { key } = data;
    if (this.data?.key !== key) this.chosen = null; // another run
    this.data = data;
    this.stops = Object.keys(data.words).map(Number);
    if (!this.stops.includes(this.chosen)) this.chosen = null;
    this.at = this.chosen ?? this.stops.at(-1);
    this.draw();
  }

  choose(stop) {
    if (stop === this.at) return;
    this.chosen = this.at = stop;
    this.draw();
  }

  turn() {
    this.first = (this.first + SHOWN) % this.data.prompts.length;
    this.draw();
  }

  x(update) {
    return LEFT + ((this.width - LEFT - RIGHT) * update) / this.data.most;
  }

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
    set(this.note, { text: data.note });
    this.curves();
    this.slider();
    const shown = data.prompts.slice(this.first, this.first + SHOWN);
    const words = data.words[at];
    this.answers.replaceChildren(
      ...shown.map((prompt, n) =>
        said(
          prompt,
          words.map((of) => of[this.first + n]),
          data.names,
        ),
      ),
    );
  }

  line(values) {
    const { updates } = this.data;
    return values.map((v, n) => `${n ? "L" : "M"}${this.x(updates[n])},${this.y(v)}`).join("");
  }

  curves() {
    const { data, at } = this;
    const made = [svg("text", { x: 0, y: 12, text: data.axis })];
    for (const tick of [0, 200, 400, 600, 800, 1000]) {
      const y = this.y(tick);
      const ends = { x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y };
      made.push(
        svg("line", { ...ends, class: tick ? "" : "zero" }),
        svg("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end", text: String(tick / 1000) }),
      );
    }
    ENGINES.forEach((engine, e) => {
      const seeds = data.seeds[e].map((values) => this.line(values)).join("");
      made.push(svg("path", { class: `seed ${engine}`, d: seeds }));
    });
    made.push(
      svg("line", { class: "at", x1: this.x(at), x2: this.x(at), y1: TOP, y2: this.height }),
    );
    ENGINES.forEach((engine, e) => {
      made.push(svg("path", { class: `mean ${engine}`, d: this.line(data.means[e]) }));
      made.push(...this.marks(engine, data.means[e]));
    });
    made.push(...this.numbers());
    this.chart.replaceChildren(...made);
    const last = data.means.map((mean, e) => `${data.names[e]} ${share(mean.at(-1))}`);
    const text = `${data.axis}: after ${data.updates.at(-1)} updates ${last.join(", ")}.`;
    set(this.chart, { "aria-label": text });
  }

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

  // Both means at the chosen update, beside the line and apart from each other.
  numbers() {
    const { data, at } = this;
    const values = data.means.map((mean) => mean[data.updates.indexOf(at)]);
    const left = this.x(at) > this.width - 90;
    const [x, anchor] = left ? [this.x(at) - 14, "end"] : [this.x(at) + 14, "start"];
    const upper = values[0] >= values[1] ? 0 : 1;
    return values.map((value, e) => {
      const y = this.y(value) + (e === upper ? -10 : 22);
      const inside = Math.min(Math.max(y, TOP + 2), this.height - 4);
      const look = `strong ${ENGINES[e]}-text`;
      return svg("text", { x, y: inside, "text-anchor": anchor, class: look, text: share(value) });
    });
  }

  slider() {
    const { data, at, stops } = this;
    const place = (update) => `left:${this.x(update)}px`;
    const labels = data.grows ? [0, at, data.most] : stops;
    set(this.knob, {
      style: place(at),
      "aria-valuemin": stops[0],
      "aria-valuemax": stops.at(-1),
      "aria-valuenow": at,
      "aria-valuetext": `${at} updates`,
    });
    this.marked.replaceChildren(
      html("div", { class: "rail", style: `left:${LEFT}px;right:${RIGHT}px` }),
      ...stops.map((stop) => html("div", { class: "stop", style: place(stop) })),
      ...[...new Set(labels)].map((stop) =>
        html("b", { style: place(stop), class: stop === at && "now", text: String(stop) }),
      ),
      html("span", { class: "update", style: place(0.75 * data.most), text: "updates" }),
    );
  }
}
