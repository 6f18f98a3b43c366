// The board: the batch as a table and as a picture, in one.
//
// Python computes everything that is drawn (gradebook/ui/board/view.py says
// what comes). This program draws it and sends what the learner does. A part of
// the board knows the board and the parts that it was given, and reaches for no
// other.

import { writePageParameters } from "./address.js";
import { Axis, parsed, short } from "./scale.js";
import { Box } from "./box.js";
import { ChallengeLine } from "./challenge.js";
import { Causes } from "./causes.js";
import { Compared } from "./compared.js";
import { Crowd } from "./crowd.js";
import { dragging } from "./drag.js";
import { ends, layout, presenting, span } from "./layout.js";
import { Foot } from "./foot.js";
import { formula } from "./formula.js";
import { Glide } from "./glide.js";
import { Guess } from "./guess.js";
import { Head, tickDistance } from "./head.js";
import { html, Kept, remember, set, style, svg } from "./dom.js";
import { keyboard } from "./keyboard.js";
import { Legend } from "./legend.js";
import { Lines } from "./lines.js";
import { Marks } from "./marks.js";
import { alike } from "./memo.js";
import { Outbox } from "./messages.js";
import { painting } from "./chips.js";
import { Path } from "./path.js";
import { Point } from "./point.js";
import { restored } from "./refused.js";
import { Reveal } from "./reveal.js";

/** @import { Layout } from "./layout.js" */
/** @import { AxisSpec, Data, Edit, Line, Message } from "./types.js" */

const STEP = 240; // ms: undo, a flag, a row more or less
const FOLLOW = 60; // ms: answers to a hand that moves or types
const CALM = 300; // ms after which the rest of the page hears of a selection
const WIDE = 1600; // px of a window in which the box is beside the board
const SHORT = 6; // lines of a board beside which the box is as high as the path, too
const LONG = 128; // lines beyond which only those in sight are drawn
/** @type {Map<string, "linear" | "symlog">} */
const CHOSEN = new Map(); // the axis chosen by case and axis

/**
 * @typedef {object} Answer  to the page's question
 * @property {number | null} choice
 * @property {number | null} place
 *
 * @typedef {object} Server
 * @property {(message: Message) => Promise<Data | null>} ask  what the board shows after
 *   a message; null if the server is away
 */

export class Board {
  /**
   * @param {ShadowRoot} root
   * @param {Server} server
   * @param {Element | ShadowRoot} place  in which it is drawn
   */
  constructor(root, { ask }, place = root) {
    this.root = root;
    this.ask = ask;
    /** @type {(answer: Answer & {epoch: string}) => void} */
    this.tell = () => {}; // carries an answer to the page
    this.outbox = new Outbox(
      (message) => this.post(message),
      () => dispatchEvent(new Event("gradebook-settled")),
    );
    this.glide = new Glide();
    /** @type {{line: number, value: number} | null} */
    this.held = null; // the line and value under the learner's hand
    /** @type {Answer | null} */
    this.given = null; // an answer that the page has not taken yet
    /** @type {Line[]} */
    this.lines = [];
    /** @type {number[]} */
    this.bands = []; // lines of one prompt and step, or of one rollout, have one number
    /** @type {string[]} */
    this.pieces = []; // "first", "inner" or "last" of a bracket, or ""
    this.selected = 0; // the line
    this.lineInQuestion = -1;
    /** @type {[number, number]} */
    this.shown = [0, 0]; // the first line that is drawn, and the one after the last
    this.next = 0;
    /** @type {number | undefined} */
    this.calm = undefined;
    this.pathname = location.pathname;
    this.width = 0; // to ask for it at each drawing would lay the page out
    this.brings = false; // the row in question is to be in sight once it is drawn

    style(root);
    this.legend = new Legend();
    this.head = new Head(this);
    this.under = svg("svg", { class: "under", "aria-hidden": "true" });
    this.over = svg("svg", { class: "over", "aria-hidden": "true" });
    this.list = html("div", { class: "rows", role: "rowgroup" });
    this.body = html("div", { class: "body" }, this.under, this.list, this.over);
    this.scroll = html("div", { class: "scroll" }, this.body);
    this.table = html(
      "div",
      { role: "table", "aria-label": "The batch" },
      html("div", { role: "rowgroup", class: "top" }, this.head.element),
      this.scroll,
    );
    this.frame = html("div", { class: "frame" }, this.table);
    this.bar = html("div", { class: "bar" }, this.legend.element);
    this.below = html("div", { class: "below" });
    this.whole = html("div", { class: "board" });
    this.grid = svg("g", { class: "grid" });
    this.under.append(this.grid);
    this.ruler = new Kept(this.grid);
    this.rows = new Lines(this);
    this.compared = new Compared(this);
    this.causes = new Causes(this);
    this.reveal = new Reveal(this, (share) => this.box.count(share));
    this.marks = new Marks(this, this.reveal);
    this.crowd = new Crowd(this);
    this.guess = new Guess(this);
    this.box = new Box(this, this.guess);
    const { sheet } = this.box;
    this.challenge = new ChallengeLine(this, { sheet, frame: this.frame });
    this.path = new Path(this);
    this.foot = new Foot(this, this.rows);
    this.point = new Point(this);
    const { box, path } = this;
    this.whole.append(box.whole, this.bar, this.frame, this.below, path.whole);
    place.replaceChildren(this.whole);
    dragging(this);
    painting(this);
    keyboard(this);
    this.scroll.addEventListener("scroll", () => this.render(0));
    this.watch = new ResizeObserver(() => {
      this.width = this.frame.clientWidth;
      if (this.latest) this.render(0);
    });
    this.watch.observe(this.frame);
    /** @param {Event} event */
    this.news = (event) => this.revealed(/** @type {CustomEvent} */ (event).detail);
    addEventListener("gradebook-reveal", this.news);

    /** @type {Data | null} */
    this.latest = null;
    /** @type {Layout | null} */
    this.laid = null;
    this.handleAxis = new Axis({ low: 0, high: 1, unit: null }, [0, 1]);
    this.causeAxis = this.handleAxis; // of the brackets
    /** @type {Axis[]} */
    this.panels = [];
  }

  /** What is drawn; there is some before anything is drawn. */
  get data() {
    return /** @type {Data} */ (this.latest);
  }

  get layout() {
    return /** @type {Layout} */ (this.laid);
  }

  // Messages

  /**
   * The server answers with the board's new data. If it is away, the outbox sends
   * again.
   * @param {Message} message
   */
  async post(message) {
    const data = await this.ask(message);
    this.outbox.away = !data;
    if (data) this.update(data);
  }

  /**
   * New data, from a run of the page or as the answer to an edit.
   * @param {Data} data
   */
  update(data) {
    const before = this.latest;
    if (before?.epoch === data.epoch && before.version > data.version) return;
    if (data.covered) this.reveal.finish(); // the lead took it back
    this.latest = { ...data, columns: data.columns.map(column) };
    this.arrange();
    const other = before?.epoch !== data.epoch;
    if (other) this.held = null;
    if (data.covered !== before?.covered) this.guess.forget();
    if (this.given && other && data.covered) this.answer(this.given);
    else this.given = null; // its session took the answer
    if (data.progress !== undefined) remember(data.progress);
    this.follow(data);
    this.outbox.heard(data.epoch, data.ack, data.behind);
    restored(data, (edit) => this.put(edit));
    const revealed = before?.covered && !data.covered && !other;
    if (other || (data.edited && this.reveal.playing)) this.reveal.finish();
    if (revealed && data.box) {
      this.reveal.play();
      this.bring();
    }
    // What a run of the page sends does not disturb the reveal.
    if (this.reveal.playing) return;
    this.render(other ? 0 : this.busy ? FOLLOW : STEP);
    if (revealed) this.box.focus();
    if (revealed || (other && data.covered)) this.brings = true;
  }

  /**
   * What the page shows outside the board, and the board brings.
   * @param {Data} data
   */
  follow({ epoch, formula: text, address }) {
    if (text !== undefined) formula(epoch, text);
    // An answer may come after the reader went to another page.
    if (address && location.pathname === this.pathname) writePageParameters(...address);
  }

  /** The row in question is in sight, beside the question or the verdict. */
  bring() {
    const row = this.data.box && this.rows.element(this.lineInQuestion);
    row?.scrollIntoView({ block: "nearest", behavior: "instant" });
  }

  /** What follows from the data alone. */
  arrange() {
    const { data } = this;
    this.lines = linesOf(data);
    this.bands = data.lines ? groups(this.lines) : bands(data);
    this.pieces = data.lines ? joined(this.bands) : pieces(data, this.bands);
    const { box } = data;
    this.lineInQuestion = box ? this.lineOf(box.row, box.token ?? null) : -1;
  }

  /**
   * The line of a row, or of a token of it; -1 if there is none.
   * @param {number} row
   * @param {number | null} token
   */
  lineOf(row, token) {
    return this.lines.findIndex(
      (line) =>
        line.row === row &&
        (token === null ||
          line.first === null ||
          (line.first <= token && token <= (line.last ?? line.first))),
    );
  }

  /**
   * A room's news bring the answer before the page's run, about the original batch.
   * @param {Partial<Data>} shown
   */
  revealed(shown) {
    const data = this.latest;
    if (!data || shown.name !== data.name || !data.covered || data.edited) return;
    const path = shown.path?.row === data.row ? shown.path : data.path;
    this.update({ ...data, ...shown, path });
  }

  /**
   * The guess goes to the server, which answers with the faulty numbers.
   * @param {Answer} answer
   */
  answer({ choice, place }) {
    this.given = { choice, place };
    if (this.data.box?.reveals) this.reveal.ask();
    this.tell({ epoch: this.data.epoch, choice, place });
  }

  /** @param {Edit} edit */
  put(edit) {
    clearTimeout(this.calm);
    if (edit.do !== "select") this.reveal.finish();
    this.outbox.put(edit);
  }

  newGesture() {
    return this.outbox.newGesture();
  }

  /** The act of the last edit has ended. */
  finish() {
    this.outbox.finish();
  }

  /** A hand rests in the middle of an act. */
  pauses() {
    this.outbox.pauses();
  }

  /** The server has heard everything. */
  get idle() {
    return this.outbox.idle;
  }

  /**
   * What a cell will hold, if an edit of it is on its way.
   * @param {number} row
   * @param {string} column
   */
  pending(row, column) {
    return this.outbox.pending(row, column);
  }

  /**
   * The mask of a row as it will be, "101...".
   * @param {number} row
   */
  bits(row) {
    const mask = this.data.columns.findIndex((c) => c.kind === "tokens");
    return mask < 0 ? "" : this.outbox.mask(row, String(this.data.rows[row][mask]));
  }

  // Handles

  /**
   * The value of the line's handle, or null.
   * @param {number} line
   * @returns {number | null}
   */
  value(line) {
    if (this.held?.line === line) return this.held.value;
    const { column, values } = this.data.handles;
    const { row, first } = this.lines[line];
    const typed = this.outbox.pending(row, column, this.dragsTokens ? first : null);
    const received = values[line] ?? null;
    return typed === undefined ? received : (parsed(String(typed)) ?? received);
  }

  /**
   * The handle of the line does not move.
   * @param {number} line
   */
  isFixed(line) {
    const { fixed } = this.data;
    return Boolean(fixed) && fixed?.line !== line;
  }

  /**
   * The value under a hand at a place of the left axis.
   * @param {number} pixels
   */
  snapped(pixels) {
    const { fixed } = this.data;
    if (!fixed) return this.handleAxis.snapped(pixels);
    const far = fixed.values.map((value) => Math.abs(this.handleAxis.at(value) - pixels));
    return fixed.values[far.indexOf(Math.min(...far))];
  }

  /**
   * A hand or a key holds the line's handle at a value.
   * @param {number} line
   * @param {number} value
   */
  hold(line, value) {
    this.held = { line, value };
  }

  /** @param {number} line */
  holds(line) {
    return this.held?.line === line;
  }

  /**
   * Moves the handle that is held.
   * @param {number} line
   * @param {number} value
   * @param {number} gesture
   */
  move(line, value, gesture) {
    this.hold(line, value);
    this.type(line, short(value), gesture);
    this.rows.follow(line, value); // the marks stay until the answer is there
  }

  /**
   * Gives what the line's handle moves another value.
   * @param {number} line
   * @param {string} value
   * @param {number} gesture
   */
  type(line, value, gesture) {
    this.put({ ...this.place(line, this.data.handles.column), value, gesture });
  }

  /**
   * The edit of a column's cell on a line, without its value: of a row, or of the
   * line's tokens.
   * @param {number} line
   * @param {string} column
   * @returns {Edit}
   */
  place(line, column) {
    const { row, first, last } = this.lines[line];
    const isList = this.data.columns.find((c) => c.name === column)?.kind === "list";
    if (first === null || !isList) return { do: "cell", row, column };
    return { do: "tokens", row, start: first, stop: (last ?? first) + 1, column };
  }

  /** Handles move numbers of tokens, and not of rows. */
  get dragsTokens() {
    const { columns, handles, lines } = this.data;
    return Boolean(lines) && columns.find((c) => c.name === handles.column)?.kind === "list";
  }

  /**
   * The hand lets go of the handle.
   * @param {number} line
   * @param {boolean} moved
   */
  release(line, moved) {
    this.held = null;
    if (moved) this.finish();
    else this.put({ do: "select", row: this.lines[line].row, token: this.lines[line].first });
    this.render(0);
  }

  // The selection

  /** The row that is selected, or whose token is. */
  get row() {
    return this.lines[this.selected]?.row ?? this.data.row;
  }

  /**
   * Another line is selected. The page below the board follows when the
   * hand rests, or with the next edit, which may be the start of a drag.
   * @param {number} line
   */
  select(line) {
    if (line === this.selected || !this.lines[line]) return;
    const { row, first } = this.lines[line];
    this.put({ do: "select", row, token: first, gesture: 0 });
    this.calm = setTimeout(() => this.finish(), CALM);
    this.render(0);
  }

  /**
   * The row can be edited: in a long list only the selected one.
   * @param {number} row
   */
  isOpen(row) {
    return !this.long || row === this.row;
  }

  /**
   * The focus to a part of a line; false if the line is not drawn.
   * @param {number} line
   * @param {string} selector
   */
  focus(line, selector) {
    return this.rows.focus(line, selector);
  }

  /** @param {HTMLInputElement} cell */
  leave(cell) {
    this.rows.left(cell);
  }

  /** @param {HTMLInputElement} cell */
  restore(cell) {
    return this.rows.restore(cell);
  }

  // Drawing

  /** A hand is at work. */
  get busy() {
    return this.held !== null || this.rows.typing;
  }

  /** How far the axis of the result reaches while the question is covered. */
  get reachBefore() {
    return this.data.panels[this.data.numbers].reach[0];
  }

  /** Draws what was typed or painted at the next frame: an edit leaves first. */
  soon() {
    this.next ||= requestAnimationFrame(() => this.render(0));
  }

  /** @param {number} length  ms in which the marks go to where they belong */
  render(length) {
    cancelAnimationFrame(this.next);
    this.next = 0;
    const { width, latest: data } = this;
    if (!width || !data?.panels) return;
    // During a gesture the columns stay where they are.
    if (!this.busy || this.laid?.width !== width) {
      const laid = layout(data, width, this.pieces.some(Boolean), innerWidth >= WIDE);
      if (!alike(this.laid, laid)) this.laid = laid;
    }
    const { selection } = this.outbox;
    const [row, token] = selection
      ? [selection.row ?? 0, selection.token ?? null]
      : [data.row, data.token ?? null];
    this.selected = this.lineOf(row, token);
    this.window();
    if (!this.held) this.axes();
    set(this.whole, {
      class: [
        "board",
        data.stale && "stale",
        this.layout.narrow && "narrow",
        this.layout.plain && "plain",
        this.layout.compares && "compares",
        data.box && "lesson",
        this.lines.length <= SHORT && "short",
        data.unnamed && "unnamed",
        data.fixed && "fixed",
        presenting() && "presenting",
      ],
    });
    this.head.render(this.reveal.wide);
    this.ruled(length);
    this.rows.render();
    this.causes.render(length);
    this.compared.render();
    this.marks.render(length);
    this.glide.sweep();
    this.box.render();
    this.crowd.render();
    this.guess.render();
    this.legend.render(data, this.layout, this.causes.times, this.held !== null);
    this.foot.render();
    this.challenge.render();
    this.path.render();
    this.point.render();
    if (this.brings) this.bring();
    this.brings = false;
  }

  get long() {
    return this.lines.length > LONG;
  }

  /** Which lines are drawn: all of them, or in a long list those in sight. */
  window() {
    const { layout } = this;
    const count = this.lines.length;
    const height = count * layout.line;
    this.scroll.classList.toggle("long", this.long);
    this.body.style.height = `${height}px`;
    for (const picture of [this.under, this.over])
      set(picture, { width: layout.width, height: Math.max(height, 1) });
    let [first, last] = [0, count];
    if (this.long) {
      first = Math.floor(this.scroll.scrollTop / layout.line) - 4;
      last = first + Math.ceil(this.scroll.clientHeight / layout.line) + 8;
    }
    this.shown = [Math.max(first, 0), Math.min(last, count)];
  }

  axes() {
    const { data } = this;
    this.handleAxis = this.axis("handle axis", data.handles.axis);
    const causes = this.axis("cause axis", data.causeAxis ?? data.handles.axis);
    this.causeAxis = span(this.layout, "cause axis") ? causes : this.handleAxis;
    this.panels = data.panels.map((panel, i) => {
      const { wide } = this.reveal;
      const reach = panel.reach[wide ? 1 : 0];
      const unit = panel.unit[wide ? 1 : 0];
      return this.axis(`panel ${i}`, { low: -reach, high: reach, unit });
    });
  }

  /**
   * @param {string} name
   * @param {AxisSpec} spec
   */
  axis(name, spec) {
    const linear = CHOSEN.get(`${this.data.name} ${name}`) === "linear";
    const axis = new Axis(linear ? { ...spec, unit: null } : spec, ends(this.layout, name));
    axis.bendable = spec.unit !== null;
    return axis;
  }

  /** @param {string} name */
  bend(name) {
    const key = `${this.data.name} ${name}`;
    CHOSEN.set(key, CHOSEN.get(key) === "linear" ? "symlog" : "linear");
    this.render(STEP);
  }

  /**
   * Lines behind the rows, at each axis' numbers.
   * @param {number} length
   */
  ruled(length) {
    const height = this.lines.length * this.layout.line;
    /**
     * @param {Axis} axis
     * @param {string} name
     */
    const draw = (axis, name) => {
      for (const tick of axis.ticks(tickDistance(this.layout))) {
        const key = `line ${name} ${tick}`;
        const line = this.ruler.get(key, () => svg("line"));
        this.glide.to(key, [axis.at(tick)], length, ([at]) => {
          const x = Math.round(at) + 0.5;
          set(line, { x1: x, x2: x, y1: 0, y2: height, class: tick ? "" : "zero" });
        });
      }
    };
    const { plain, narrow } = this.layout;
    const lane = this.data.lanes || (narrow && this.data.lines);
    if (!plain && !lane) draw(this.handleAxis, "handle");
    if (!plain && this.causeAxis !== this.handleAxis) draw(this.causeAxis, "cause");
    this.panels.forEach((axis, i) => draw(axis, String(i)));
    this.ruler.sweep();
  }

  stop() {
    clearTimeout(this.calm);
    cancelAnimationFrame(this.next);
    this.outbox.stop();
    this.glide.stop();
    this.reveal.finish();
    this.point.stop();
    this.watch.disconnect();
    removeEventListener("gradebook-reveal", this.news);
  }
}

/**
 * A column, which comes as a list.
 * @param {any} cells
 */
const column = (cells) => {
  if (!Array.isArray(cells)) return cells;
  const [name, title, kind, help] = cells;
  return { name, title, kind, help };
};

/**
 * @param {Data} data
 * @returns {Line[]}
 */
function linesOf({ lines, rows }) {
  if (!lines)
    return rows.map((_, row) => ({ row, first: null, last: null, group: row, head: true }));
  return lines.map(([row, first, last, group, head]) => ({ row, first, last, group, head }));
}

/**
 * Lines of one group have one number, line by line.
 * @param {Line[]} lines
 */
function groups(lines) {
  let group = 0;
  return lines.map((line, n) => {
    if (n && line.group !== lines[n - 1].group) group += 1;
    return group;
  });
}

/**
 * The place of each line in its group's bracket.
 * @param {number[]} groups
 */
const joined = (groups) =>
  groups.map((group, n) => {
    const [above, below] = [groups[n - 1] === group, groups[n + 1] === group];
    return above ? (below ? "inner" : "last") : below ? "first" : "";
  });

/**
 * Rows of one prompt and step share one band: its number, line by line.
 * @param {Data} data
 */
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

/**
 * Which rows are pieces of one rollout, one below the other.
 * @param {Data} data
 * @param {number[]} bands
 */
function pieces({ columns, rows }, bands) {
  const at = columns.findIndex((c) => c.name === "rollout");
  /**
   * @param {number} a
   * @param {number} b
   */
  const joined = (a, b) => rows[b] && bands[a] === bands[b] && rows[a][at] === rows[b][at];
  return rows.map((_, r) => {
    const [above, below] = [at >= 0 && joined(r, r - 1), at >= 0 && joined(r, r + 1)];
    return above ? (below ? "inner" : "last") : below ? "first" : "";
  });
}
