// What the engines compare tokens with, left of the results: windows around an old
// log-probability, ticks at other ones, lanes of tokens that share a denominator, and
// where a step or a pass begins.

import { Kept, set, svg } from "./dom.js";
import { alike } from "./memo.js";
import { span } from "./layout.js";

/** @import { Board } from "./board.js" */
/** @import { Data, Lane, Window } from "./types.js" */

const LANES = [0.5, 0.78]; // where they are, as shares of the left axis' width
const NEAR = [0.42, 0.62]; // on a phone
const LETTER = 7; // pixels of a ratio's letter
const BESIDE = 9; // pixels between a ratio and what is beside it
const HANDLE = 11; // pixels from a handle's middle to its edge

export class Compared {
  /** @param {Board} board */
  constructor(board) {
    this.board = board;
    const layer = svg("g", { class: "compared" });
    board.under.append(layer);
    this.kept = new Kept(layer);
  }

  render() {
    const { data, layout } = this.board;
    if (!layout.plain) {
      this.windows(data);
      this.turns(data);
      data.ticks?.forEach(([title, values]) =>
        values.forEach((value, line) => this.tick(title, value, line)),
      );
      data.lanes?.forEach((lanes, engine) => {
        for (const lane of lanes) this.lane(lane, engine);
      });
    }
    for (const [line, text] of data.rules ?? []) this.rule(line, text);
    this.kept.sweep();
  }

  /** @param {Data} data */
  windows({ windows, ratios }) {
    const { board } = this;
    windows?.[0].forEach((correct, line) => {
      const faulty = windows[1]?.[line];
      const both = faulty && alike(correct, faulty);
      this.window(correct, line, both ? "both" : "correct");
      if (faulty && !both) this.window(faulty, line, "faulty");
      const value = board.value(line);
      if (!ratios || value === null || board.layout.narrow) return;
      const text = this.kept.get(`ratio ${line}`, () => svg("text", { class: "ratio" }));
      const drawn = [correct, ...(faulty ? [faulty] : [])];
      const x = this.free(value, drawn, line, ratios[line].length * LETTER);
      set(text, { x, y: this.middle(line) + 4, text: ratios[line] });
    });
  }

  /**
   * Where a text begins that covers no handle, window or tick of its line, as near to
   * the handle as can be.
   * @param {number} value  of the handle
   * @param {Window[]} windows
   * @param {number} line
   * @param {number} width  of the text
   */
  free(value, windows, line, width) {
    const { board } = this;
    const axis = board.handleAxis;
    const place = span(board.layout, "handle axis") ?? { left: 0, width: 0 };
    const at = axis.at(value);
    const taken = [[at - HANDLE, at + HANDLE]];
    for (const [low, , high] of windows)
      if (low !== null && high !== null) taken.push([axis.at(low), axis.at(high)]);
    for (const [, values] of board.data.ticks ?? []) {
      const tick = values[line];
      if (tick !== null) taken.push([axis.at(tick), axis.at(tick)]);
    }
    const starts = taken.flatMap(([from, to]) => [to + BESIDE, from - BESIDE - width]);
    /** @param {number} x */
    const covers = (x) => taken.some(([from, to]) => x < to + 1 && from - 1 < x + width);
    /** @param {number} x */
    const inside = (x) => x >= place.left && x + width <= place.left + place.width;
    /** @param {number} x */
    const far = (x) => Math.abs(x + width / 2 - at);
    const fits = starts.filter((x) => inside(x) && !covers(x)).sort((a, b) => far(a) - far(b));
    return fits[0] ?? at + HANDLE + BESIDE;
  }

  /**
   * At which dragged number an engine's push is 0, through all lines.
   * @param {Data} data
   */
  turns({ turns }) {
    const { board } = this;
    const height = board.layout.line;
    turns?.forEach((values, engine) =>
      values.forEach((value, line) => {
        if (value === null || !board.handleAxis.holds(value)) return;
        const kind = engine ? "faulty" : "correct";
        const path = this.kept.get(`turn ${kind} ${line}`, () => svg("path"));
        const x = board.handleAxis.at(value);
        set(path, { class: `turn ${kind}`, d: `M${x},${line * height} v${height}` });
      }),
    );
  }

  /** @param {number} line */
  middle(line) {
    return (line + 0.5) * this.board.layout.line;
  }

  /**
   * @param {Window} window
   * @param {number} line
   * @param {"both" | "correct" | "faulty"} kind
   */
  window([low, anchor, high, edge], line, kind) {
    if (low === null || anchor === null || high === null) return;
    const axis = this.board.handleAxis;
    const [from, at, to] = [low, anchor, high].map((x) => axis.at(x));
    const height = this.board.layout.line;
    const [top, bottom] = [line * height + 6, (line + 1) * height - 6];
    const key = `${kind} ${line}`;
    const area = this.kept.get(`area ${key}`, () => svg("rect"));
    set(area, { class: `window ${kind}`, x: from, y: top, width: to - from, height: bottom - top });
    if (kind === "faulty") return;
    const thin = this.kept.get(`thin ${key}`, () => svg("path"));
    const thick = this.kept.get(`thick ${key}`, () => svg("path"));
    const stops = edge > 0 ? to : from;
    const passes = [at, ...(edge > 0 ? [from] : edge < 0 ? [to] : [from, to])];
    set(thin, {
      class: `edge ${kind}`,
      d: passes.map((x) => `M${x},${top} V${bottom}`).join(" "),
    });
    set(thick, { class: `edge thick ${kind}`, d: edge ? `M${stops},${top} V${bottom}` : "" });
  }

  /**
   * @param {string} title
   * @param {number | null} value
   * @param {number} line
   */
  tick(title, value, line) {
    const { board } = this;
    const handle = board.value(line);
    if (value === null || board.data.masked?.[line] === "1") return;
    // Under the handle it would be a cross through it.
    const hidden =
      handle !== null && Math.abs(board.handleAxis.at(handle) - board.handleAxis.at(value)) < 3;
    const at = board.handleAxis.at(value);
    const tick = this.kept.get(`tick ${title} ${line}`, () => svg("path", { class: "tick" }));
    const height = board.layout.line;
    set(tick, { d: hidden ? "" : `M${at},${line * height + 8} v${height - 16}` });
  }

  /**
   * Lines that share a denominator: a bracket with its number.
   * @param {Lane} lane
   * @param {number} engine
   */
  lane([first, last, words], engine) {
    const { board } = this;
    const place = span(board.layout, "handle axis");
    if (!place) return;
    const x = place.left + place.width * (board.layout.narrow ? NEAR : LANES)[engine];
    const height = board.layout.line;
    const [top, bottom] = [first * height + 4, (last + 1) * height - 4];
    const serif = engine ? -6 : 6;
    const kind = engine ? "faulty" : "correct";
    const key = `lane ${engine} ${first}`;
    const path = this.kept.get(key, () => svg("path"));
    const marks = [];
    for (let line = first; line <= last; line++)
      marks.push(`M${x},${this.middle(line)} h${serif * 0.7}`);
    const d = `M${x + serif},${top} H${x} V${bottom} h${serif} ${marks.join(" ")}`;
    set(path, { class: `bracket near ${kind}`, d });
    const text = this.kept.get(`${key} text`, () => svg("text"));
    set(text, {
      class: `lane ${kind}-text`,
      x: engine ? x + 10 : x - 10,
      y: (top + bottom) / 2 + 5,
      "text-anchor": engine ? "start" : "end",
      text: words,
    });
  }

  /**
   * Where another step begins, or another pass.
   * @param {number} line
   * @param {string} words
   */
  rule(line, words) {
    const { board } = this;
    const y = line * board.layout.line;
    const path = this.kept.get(`rule ${line}`, () => svg("path", { class: "rule" }));
    set(path, { d: line ? `M0,${y} H${board.layout.width}` : "" });
    if (board.layout.narrow) return;
    const text = this.kept.get(`rule ${line} text`, () => svg("text", { class: "rule-text" }));
    const x = (span(board.layout, "handle axis")?.left ?? 0) + 6;
    set(text, { x, y: y + 15, text: words });
  }
}
