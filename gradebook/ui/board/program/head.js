// The header: names of the columns, and the axes with their numbers.

import { button, html, set, svg } from "./dom.js";
import { alike } from "./memo.js";
import { minus, short } from "./scale.js";

/** @import { Board } from "./board.js" */
/** @import { Layout, Span } from "./layout.js" */
/** @import { Axis } from "./scale.js" */

const LETTER = 6.8; // pixels of a title's letter
const SMALL = 5.6; // pixels of a letter at an axis' ends

/** @param {Layout} layout */
export const tickDistance = ({ narrow }) => (narrow ? 26 : 44);

export class Head {
  /** @param {Board} board */
  constructor(board) {
    this.board = board;
    this.element = html("div", { class: "head", role: "row" });
    /** @type {unknown} */
    this.drawn = null;
  }

  /** @param {boolean} wide  the axes are as wide as they have to be */
  render(wide) {
    const { board } = this;
    const { data, layout } = board;
    const now = [
      layout,
      data.names,
      [data.numbers, data.stale, data.covered, data.edited, wide],
      data.panels.map((panel) => panel.title),
      [board.handleAxis, board.causeAxis, ...board.panels].map((axis) => [
        axis.low,
        axis.high,
        axis.unit,
      ]),
    ];
    if (alike(this.drawn, now)) return;
    this.drawn = now;
    this.element.replaceChildren(...layout.spans.map((span) => this.cell(span, wide)));
  }

  /**
   * @param {Span} span
   * @param {boolean} wide
   */
  cell(span, wide) {
    const { data, layout } = this.board;
    const cell = html("div", {
      role: "columnheader",
      class: "cell",
      style: `left:${span.left}px;width:${span.width}px`,
    });
    if (span.name === "row") {
      set(cell, { class: "cell number" });
      cell.append(html("span", { text: layout.narrow ? "#" : "row" }));
    } else if (span.name === "handle axis") {
      if (layout.plain) return cell;
      const { columns, title, values } = data.handles;
      const drags = values.some((value) => value !== null) && !data.fixed;
      const others = data.columns.filter(({ name }) => columns.slice(1).includes(name));
      const along = others.map((column) => ` with ${column.title}`).join("");
      const note = drags ? `(drag${along})` : "";
      this.axis(cell, this.board.handleAxis, span, title, note);
    } else if (span.name === "cause axis") {
      if (layout.plain) return cell;
      this.axis(cell, this.board.causeAxis, span, data.causeAxis?.title ?? "", "");
    } else if (span.panel !== undefined) {
      const { title: whole } = data.panels[span.panel];
      const crowded = whole.length * LETTER > span.width;
      const title = crowded ? whole.replace(/ of the .*/, "") : whole;
      const note = wide ? this.widened(span.panel) : "";
      this.axis(cell, this.board.panels[span.panel], span, title, note);
    } else if (span.engine !== undefined) {
      set(cell, { class: "cell number" });
      const name = data.names[span.engine] + (data.stale ? ", before" : "");
      set(cell, { "aria-label": `${data.panels[data.numbers].title}, ${name}` });
      const [part] = data.panels[data.numbers].title.split(" of the ");
      if (data.panels.length > 1) cell.append(html("div", { text: part }));
      cell.append(html("span", { text: name }));
    } else if (span.name === "token" || span.name === "advantage") {
      set(cell, { class: "cell number" });
      cell.append(html("span", { text: span.name === "token" ? "token" : "adv." }));
    } else if (span.column) {
      const { title, help, kind } = span.column;
      const right = span.name === "reward" || kind === "list";
      set(cell, { class: `cell ${right ? "number" : kind}`, title: help || null });
      const text = data.lines && kind === "tokens" ? "mask" : title;
      cell.append(html("span", { class: help ? "helped" : null, text }));
    }
    return cell;
  }

  /**
   * That the axis became wider with the answer.
   * @param {number} panel
   */
  widened(panel) {
    const { data } = this.board;
    const [before, now] = data.panels[panel].reach;
    const answered = data.box && !data.covered;
    if (!answered || data.edited || before === now) return "";
    return `\u00b7 axis widened, \u00b1${before} \u2192 \u00b1${now}`;
  }

  /**
   * @param {HTMLElement} cell
   * @param {Axis} axis
   * @param {Span} span
   * @param {string} title
   * @param {string} note
   */
  axis(cell, axis, span, title, note) {
    const { board } = this;
    cell.classList.add("axis");
    const panel = span.panel === undefined ? null : board.data.panels[span.panel];
    const help = panel?.help || null;
    const words = html("span", { class: help ? "helped" : null, title: help, text: title });
    const line = html("span", { class: "title" }, words);
    cell.append(line);
    /** @param {string[]} words */
    const fits = (words) =>
      title.length * LETTER + words.join("\u25c2  \u25b8 ").length * SMALL <= span.width;
    const ends = [panel?.ends, panel?.briefly].find((words) => words && fits(words));
    if (ends) {
      const [less, more] = ends;
      cell.append(html("span", { class: "ends ends-less", text: `\u25c2 ${less}` }));
      cell.append(html("span", { class: "ends ends-more", text: `${more} \u25b8` }));
    }
    if (!panel && board.data.lanes) {
      cell.append(html("span", { class: "ends ends-middle", text: "tokens counted" }));
      return;
    }
    if (note && !board.layout.narrow)
      line.append(" ", html("span", { class: "quiet", text: note }));
    if (axis.bendable) {
      const other = axis.unit ? "linear" : "symlog";
      const look = {
        class: "bend",
        title: `A ${axis.unit ? "symlog" : "linear"} axis. Change to ${other}.`,
        text: axis.unit ? "symlog" : "linear",
      };
      line.append(
        " ",
        button(look, () => board.bend(span.name)),
      );
    }
    if (!panel && board.layout.narrow && board.data.lines) return; // a lane
    const numbers = svg("svg", {
      class: "numbers",
      "aria-hidden": "true",
      width: span.width,
      height: 18,
    });
    for (const tick of axis.ticks(tickDistance(board.layout))) {
      const x = axis.at(tick) - span.left;
      numbers.append(svg("text", { x, y: 13, text: minus(short(tick)) }));
    }
    cell.append(numbers);
  }
}
