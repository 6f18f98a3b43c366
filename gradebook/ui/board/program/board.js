// The board: the batch as a table and as a picture, in one.
//
// Python computes everything that is drawn (gradebook/ui/board/view.py says
// what comes). This program draws it and sends what the learner does.

import { Axis, close, squashed } from "./scale.js";
import { Box } from "./box.js";
import { ChallengeLine } from "./challenge.js";
import { Causes } from "./causes.js";
import { dragging } from "./drag.js";
import { ends, layout, presenting } from "./layout.js";
import { Foot } from "./foot.js";
import { Glide } from "./glide.js";
import { Guess } from "./guess.js";
import { head } from "./head.js";
import { html, Kept, remember, set, style, svg } from "./dom.js";
import { keyboard } from "./keyboard.js";
import { Marks } from "./marks.js";
import { Outbox } from "./messages.js";
import { painting } from "./chips.js";
import { Path } from "./path.js";
import { restored } from "./refused.js";
import { Reveal } from "./reveal.js";
import { Rows } from "./rows.js";

const STEP = 240; // ms: undo, a flag, a row more or less
const FOLLOW = 60; // ms: answers to a hand that moves or types
const CALM = 300; // ms after which the rest of the page hears of a selection
const WIDE = 1600; // px of a window in which the box stands beside the board
const SHORT = 6; // rows of a board beside which the box is as high as the path, too
const CHOSEN = new Map(); // the axis chosen by case and axis: linear, symlog

export class Board {
  constructor(root) {
    this.root = root;
    this.outbox = new Outbox();
    this.outbox.send = (message) => this.post(message);
    this.outbox.settled = () => dispatchEvent(new Event("gradebook-settled"));
    this.glide = new Glide();
    this.held = null; // the row and value under the learner's hand
    this.data = null;
    this.build();
    dragging(this);
    painting(this);
    keyboard(this);
    this.width = 0; // to ask for it at each drawing would lay the page out
    this.watch = new ResizeObserver(() => {
      this.width = this.frame.clientWidth;
      if (this.data) this.render(0);
    });
    this.watch.observe(this.frame);
    this.news = ({ detail }) => this.revealed(detail);
    addEventListener("gradebook-reveal", this.news);
  }

  build() {
    style(this.root);
    this.legend = html("div", { class: "legend" });
    this.head = html("div", { class: "head", role: "row" });
    this.under = svg("svg", { class: "under", "aria-hidden": "true" });
    this.over = svg("svg", { class: "over", "aria-hidden": "true" });
    this.list = html("div", { class: "rows", role: "rowgroup" });
    this.body = html("div", { class: "body" }, this.under, this.list, this.over);
    this.scroll = html("div", { class: "scroll" }, this.body);
    this.table = html(
      "div",
      { role: "table", "aria-label": "The batch" },
      html("div", { role: "rowgroup", class: "top" }, this.head),
      this.scroll,
    );
    this.frame = html("div", { class: "frame" }, this.table);
    this.bar = html("div", { class: "bar" }, this.legend);
    this.below = html("div", { class: "below" });
    this.box = new Box(this);
    this.challenge = new ChallengeLine(this);
    this.path = new Path(this);
    this.whole = html(
      "div",
      { class: "board" },
      this.box.whole,
      this.bar,
      this.frame,
      this.below,
      this.path.whole,
    );
    this.root.replaceChildren(this.whole);
    this.grid = svg("g", { class: "grid" });
    this.under.append(this.grid);
    this.lines = new Kept(this.grid);
    this.rows = new Rows(this);
    this.causes = new Causes(this);
    this.marks = new Marks(this);
    this.guess = new Guess(this);
    this.reveal = new Reveal(this);
    this.foot = new Foot(this);
    this.scroll.addEventListener("scroll", () => this.render(0));
  }

  // The server answers with the board's new data. Where it is away, the outbox sends again.
  async post(message) {
    const body = JSON.stringify(message);
    const answer = await fetch(this.server, { method: "POST", body }).catch(() => {});
    this.outbox.away = !answer?.ok;
    if (answer?.ok) this.update({ data: await answer.json() });
  }

  get server() {
    return new URL(`../../board-edits/${this.data.epoch}`, import.meta.url);
  }

  // New data, from a run of the page or as the answer to an edit.
  update({ data }) {
    const before = this.data;
    if (before?.epoch === data.epoch && before.made > data.made) return;
    if (data.covered) this.reveal.finish(); // the lead took it back
    this.data = { ...data, columns: data.columns.map(column) };
    this.bands = bands(this.data);
    this.pieces = pieces(this.data, this.bands);
    const other = before?.epoch !== data.epoch;
    if (other) this.held = null;
    if (data.covered !== before?.covered) this.guess.forget();
    if (this.asked && other && data.covered) this.answer(this.asked);
    else this.asked = null; // its session took the answer
    if (data.progress !== undefined) remember(data.progress);
    this.outbox.heard(data.epoch, data.ack);
    restored(data, (edit) => this.put(edit));
    const revealed = before?.covered && !data.covered && !other;
    if (other || (data.edited && this.reveal.playing)) this.reveal.finish();
    if (revealed && data.box) this.reveal.play();
    // What a run of the page sends does not disturb the reveal.
    if (this.reveal.playing) return;
    const typed = this.held || this.rows.typing;
    this.render(other ? 0 : typed ? FOLLOW : STEP);
    if (revealed) this.box.whole.querySelector(".heir")?.focus({ preventScroll: true });
  }

  // A room's news bring the answer before the page's run, about the original batch.
  revealed(shown) {
    const { data } = this;
    if (shown.name !== data?.name || !data.covered || data.edited) return;
    const path = shown.path.row === data.row ? shown.path : data.path;
    this.update({ data: { ...data, ...shown, path } });
  }

  // The guess goes to the server, which answers with the faulty numbers.
  answer({ choice, place }) {
    this.asked = { choice, place };
    if (this.data.box.reveals) this.reveal.ask();
    this.tell({ epoch: this.data.epoch, ...this.asked });
  }

  // How far the axis of the result reaches while the question is covered.
  get reachBefore() {
    return this.data.panels[this.data.numbers].reach[0];
  }

  // Draws what was typed or painted at the next frame: an edit leaves first.
  soon() {
    this.next ||= requestAnimationFrame(() => this.render(0));
  }

  render(length) {
    cancelAnimationFrame(this.next);
    this.next = 0;
    const { width } = this;
    if (!width || !this.data.panels) return;
    const { data } = this;
    // While a hand is at work the columns stand where they are.
    const busy = this.held || this.rows.typing;
    if (!busy || this.layout?.width !== width)
      this.layout = layout(data, width, this.pieces.some(Boolean), innerWidth >= WIDE);
    this.selected = this.outbox.row ?? data.row;
    this.window();
    if (!this.held) this.axes();
    set(this.whole, {
      class: [
        "board",
        data.stale && "stale",
        this.layout.narrow && "narrow",
        data.box && "lesson",
        data.rows.length <= SHORT && "short",
        data.unnamed && "unnamed",
        presenting() && "presenting",
      ],
    });
    head(this);
    this.ruled(length);
    this.rows.render();
    this.causes.render(length);
    this.marks.render(length);
    this.glide.sweep();
    this.box.render();
    this.guess.render();
    this.foot.render();
    this.challenge.render();
    this.path.render();
  }

  // Which rows are drawn: all of them, or in a long list those in sight.
  window() {
    const { data, layout } = this;
    const count = data.rows.length;
    const height = count * layout.row;
    this.long = count > 128;
    this.scroll.classList.toggle("long", this.long);
    this.body.style.height = `${height}px`;
    for (const one of [this.under, this.over])
      set(one, { width: layout.width, height: Math.max(height, 1) });
    let [first, last] = [0, count];
    if (this.long) {
      first = Math.floor(this.scroll.scrollTop / layout.row) - 4;
      last = first + Math.ceil(this.scroll.clientHeight / layout.row) + 8;
    }
    this.shown = [Math.max(first, 0), Math.min(last, count)];
  }

  axes() {
    const { data, layout } = this;
    const rewards = data.rewards.map((_, row) => this.value(row)).filter((x) => x !== null);
    const seen = close(rewards) ? [] : [0];
    this.reward = this.axis("reward axis", [...seen, ...rewards, ...this.causes.values()]);
    this.panels = data.panels.map((panel, i) => {
      const { wide } = this.reveal;
      const reach = panel.reach[wide ? 1 : 0];
      const values = wide ? panel.engines.flat().filter((x) => x !== null) : [];
      return this.axis(`panel ${i}`, [-reach, reach], values);
    });
  }

  // seen: the numbers that decide whether the axis has to be bent.
  axis(name, values, seen = values) {
    const own = squashed(seen);
    const key = `${this.data.name} ${name}`;
    const unit = own && CHOSEN.get(key) !== "linear" ? own : null;
    const axis = new Axis(values, unit, ...ends(this.layout, name));
    axis.bendable = Boolean(own);
    return axis;
  }

  bend(name) {
    const key = `${this.data.name} ${name}`;
    CHOSEN.set(key, CHOSEN.get(key) === "linear" ? "symlog" : "linear");
    this.render(STEP);
  }

  // Lines behind the rows, at each axis' numbers.
  ruled(length) {
    const height = this.data.rows.length * this.layout.row;
    const draw = (axis, name) => {
      for (const tick of axis.ticks(this.layout.narrow ? 26 : 44)) {
        const key = `line ${name} ${tick}`;
        const line = this.lines.get(key, () => svg("line"));
        this.glide.to(key, [axis.at(tick)], length, ([at]) => {
          const x = Math.round(at) + 0.5;
          set(line, { x1: x, x2: x, y1: 0, y2: height, class: tick ? "" : "zero" });
        });
      }
    };
    if (!this.layout.plain) draw(this.reward, "r");
    this.panels.forEach((axis, i) => draw(axis, i));
    this.lines.sweep();
  }

  // The number at which the row's handle stands, or null.
  value(row) {
    if (this.held?.row === row) return this.held.value;
    return this.rows.pendingReward(row) ?? this.data.rewards[row];
  }

  put(edit) {
    clearTimeout(this.calm);
    if (edit.do !== "select") this.reveal.finish();
    this.outbox.put(edit);
  }

  // Another row is selected. What stands below the board follows when the
  // hand rests, or with the next edit, which may be the start of a drag.
  select(row) {
    if (row === this.selected || row < 0) return;
    this.put({ do: "select", row, gesture: 0 });
    this.calm = setTimeout(() => this.outbox.finish(), CALM);
    this.render(0);
  }

  stop() {
    clearTimeout(this.calm);
    cancelAnimationFrame(this.next);
    this.outbox.stop();
    this.glide.stop();
    this.reveal.finish();
    this.watch.disconnect();
    removeEventListener("gradebook-reveal", this.news);
  }
}

const column = ([name, title, kind, help]) => ({ name, title, kind, help });

// Rows of one prompt and step stand on one band: its number, row by row.
function bands({ columns, rows }) {
  const about = ["prompt", "step"]
    .map((name) => columns.findIndex((c) => c.name === name))
    .filter((i) => i >= 0);
  let band = 0;
  return rows.map((row, r) => {
    if (r && about.some((i) => row[i] !== rows[r - 1][i])) band += 1;
    return band;
  });
}

// Which rows are pieces of one rollout, one below the other: "first", "inner" or "last".
function pieces({ columns, rows }, bands) {
  const at = columns.findIndex((c) => c.name === "rollout");
  const joined = (a, b) => rows[b] && bands[a] === bands[b] && rows[a][at] === rows[b][at];
  return rows.map((_, r) => {
    const [above, below] = [at >= 0 && joined(r, r - 1), at >= 0 && joined(r, r + 1)];
    return above ? (below ? "inner" : "last") : below ? "first" : "";
  });
}
