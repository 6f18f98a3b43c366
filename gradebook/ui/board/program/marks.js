// Both engines' results: a filled circle for correct, an open diamond for
// faulty, a line between them where they differ, and ghosts where they
// were in the case as it came.

import { Kept, set, svg } from "./dom.js";
import { ends } from "./layout.js";
import { Axis } from "./scale.js";

/** @import { Board } from "./board.js" */
/** @import { Reveal } from "./reveal.js" */
/** @import { Panel, Value } from "./types.js" */

export const BIG = "M0,-10 L10,0 L0,10 L-10,0 Z";
export const DIAMOND = "M0,-7.5 L7.5,0 L0,7.5 L-7.5,0 Z";
const AWAY = "M-7,-6 L-1,0 L-7,6 M0,-6 L6,0 L0,6";
const BACK = "M7,-6 L1,0 L7,6 M0,-6 L-6,0 L0,6";
const SMALL = "M0,-5 L5,0 L0,5 L-5,0 Z";

export class Marks {
  /**
   * @param {Board} board
   * @param {Reveal} reveal
   */
  constructor(board, reveal) {
    this.board = board;
    this.reveal = reveal;
    /** @param {string} name */
    const layer = (name) => {
      const group = svg("g", { class: name });
      board.over.append(group);
      return new Kept(group);
    };
    this.ghosts = layer("ghosts");
    this.arrows = layer("arrows");
    this.links = layer("links");
    this.circles = layer("circles");
    this.diamonds = layer("diamonds");
  }

  /** @param {number} length */
  render(length) {
    const { data, shown, layout } = this.board;
    data.panels.forEach((panel, p) => {
      for (let line = shown[0]; line < shown[1]; line++)
        this.line(panel, p, line, (line + 0.5) * layout.line, length);
    });
    for (const kept of [this.ghosts, this.arrows, this.links, this.circles, this.diamonds])
      kept.sweep();
  }

  /**
   * The marks of a line on one panel.
   * @param {Panel} panel
   * @param {number} p
   * @param {number} line
   * @param {number} y
   * @param {number} length
   */
  line(panel, p, line, y, length) {
    const { board } = this;
    const axis = board.panels[p];
    const [correct, faulty] = panel.engines.map((values) => values?.[line]);
    const key = `${p}.${line}`;
    if (absent(correct)) return;
    const blue = axis.at(correct);
    const hasFaulty = !absent(faulty);
    const asked = board.lineInQuestion === line && p === board.data.numbers ? " asked" : "";
    // The diamond sets out from the blue dot.
    const red = hasFaulty && !(asked && this.reveal.stage === 0) ? axis.at(faulty) : blue;
    const flip = hasFaulty && panel.flips.includes(line);
    const differ = hasFaulty && panel.differ.includes(line);
    const look = {
      "data-row": board.lines[line].row,
      "data-line": line,
      class: `correct${asked}`,
      "data-value": correct,
    };
    const circle = set(
      this.circles.get(key, () => svg("circle", { r: 5.5 })),
      look,
    );
    const off = hasFaulty && !axis.holds(faulty) ? Math.sign(faulty) : 0;
    const diamond = hasFaulty
      ? set(
          this.diamonds.get(key, () => svg("path")),
          {
            ...look,
            class: `faulty${asked}`,
            "data-value": faulty,
            d: off ? (off > 0 ? AWAY : BACK) : asked ? BIG : DIAMOND,
          },
        )
      : null;
    const link = differ
      ? set(
          this.links.get(key, () => svg("rect", { width: 1, height: 1 })),
          { class: `${flip ? "flip" : ""}${asked}` },
        )
      : null;
    this.ring(panel, p, line, correct, y);
    this.before(panel, p, line, y);
    const arrows = p ? [] : this.twice(line);
    board.glide.to(key, [blue, red, y], length, ([c, f, at]) => {
      set(circle, { transform: `translate(${c} ${at})` });
      if (diamond) set(diamond, { transform: `translate(${f} ${at})` });
      if (link) {
        const thick = flip ? 4 : 1.5;
        set(link, {
          transform:
            `translate(${Math.min(c, f)} ${at - thick / 2})` +
            ` scale(${Math.abs(c - f)} ${thick})`,
        });
      }
      arrows.forEach((draw, engine) => draw([c, f][engine], at));
    });
  }

  /**
   * Where the blue dot of the question was before the axis widened.
   * @param {Panel} panel
   * @param {number} p
   * @param {number} line
   * @param {number} correct
   * @param {number} y
   */
  ring(panel, p, line, correct, y) {
    const { data, layout, lineInQuestion, panels } = this.board;
    const [before, now] = panel.reach;
    const answered = data.box && !data.covered;
    const here = answered && lineInQuestion === line && p === data.numbers;
    if (!here || !this.reveal.wide || now === before || data.edited) return;
    const spec = { low: -before, high: before, unit: panel.unit[0] };
    const old = new Axis(spec, ends(layout, `panel ${p}`));
    if (Math.abs(old.at(correct) - panels[p].at(correct)) < 3) return;
    const ring = this.ghosts.get("ring", () => svg("circle", { r: 7, class: "ring" }));
    set(ring, { cx: old.at(correct), cy: y });
  }

  /**
   * From each engine's result before its second normalization: what
   * draws the arrow to a place.
   * @param {number} line
   */
  twice(line) {
    const axis = this.board.panels[0];
    return (this.board.data.second ?? []).map((values, engine) => {
      const value = values[line];
      const from = absent(value) ? null : axis.at(value);
      const look = { class: engine ? "faulty" : "correct" };
      const arrow = this.arrows.get(`${line}.${engine}`, () => svg("path", look));
      /**
       * @param {number} to
       * @param {number} y
       */
      return (to, y) => {
        const lift = y + (engine ? 9 : -9);
        const start = from ?? to;
        const back = Math.sign(start - to);
        const tip = to + back * 3;
        const head = `${tip + back * 5},${lift - 3.5} L${tip},${lift} L${tip + back * 5},${lift + 3.5}`;
        const way = `M${start},${lift - 3} V${lift + 3} M${start},${lift} H${tip} M${head}`;
        set(arrow, { d: Math.abs(to - start) >= 10 ? way : "" });
      };
    });
  }

  /**
   * Where the marks were before the edits.
   * @param {Panel} panel
   * @param {number} p
   * @param {number} line
   * @param {number} y
   */
  before(panel, p, line, y) {
    const axis = this.board.panels[p];
    panel.engines.forEach((values, engine) => {
      const before = panel.ghosts?.[engine]?.[line];
      if (absent(before) || before === values?.[line]) return;
      const make = () =>
        engine
          ? svg("path", { d: SMALL, class: "faulty" })
          : svg("circle", { r: 4, class: "correct" });
      /** @type {SVGElement} */
      const ghost = this.ghosts.get(`${p}.${line}.${engine}`, make);
      set(ghost, { transform: `translate(${axis.at(before)} ${y})` });
    });
  }
}

/**
 * @param {Value | undefined} x
 * @returns {x is null | undefined}
 */
const absent = (x) => x === null || x === undefined;
