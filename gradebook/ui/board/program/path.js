// The path of the selected row through the stages, as a pipe: the correct track,
// and after the answer the faulty one, which leaves it where the engines part.

import { button, html, prose, set, svg } from "./dom.js";
import { sign } from "./legend.js";
import { alike } from "./memo.js";

/** @import { Board } from "./board.js" */
/** @import { Stage, Track } from "./types.js" */

const LEAST = 88; // pixels of a stage; on a phone the path scrolls
const [TOP, LOW] = [10, 80]; // pixels of the tracks, below the names

export class Path {
  /** @param {Board} board */
  constructor(board) {
    this.board = board;
    this.title = html("h2", { class: "path-title" });
    this.tracks = svg("svg", { class: "tracks", "aria-hidden": "true" });
    this.stages = html("div", {
      class: "stages",
      role: "group",
      "aria-label": "Stages",
    });
    this.note = html("p", { class: "note quiet" });
    this.pipe = html("div", { class: "pipe" }, this.tracks, this.stages, this.note);
    this.scroll = html("div", { class: "pipes" }, this.pipe);
    this.whole = html("section", { class: "path" }, this.title, this.scroll);
    /** @type {unknown} */
    this.drawn = null;
    /** @type {number | null} */
    this.parts = null;
  }

  render() {
    const { data, width, root } = this.board;
    const { path } = data;
    this.whole.hidden = !path;
    if (!path) return;
    const full = this.whole.clientWidth || width;
    const now = [path, full, data.covered, data.names];
    if (alike(this.drawn, now)) return;
    this.drawn = now;
    const { row, stages, parts } = path;
    const at =
      parts === null
        ? " is the same in both engines"
        : `: the engines first differ at \`${stages[parts].name}\``;
    const title = `Row ${row}${data.covered ? " through the computation" : at}`;
    this.title.replaceChildren(...prose(title));
    const each = Math.max(full / stages.length, LEAST);
    this.pipe.style.width = `${each * stages.length}px`;
    set(this.scroll, { tabindex: each > full / stages.length ? 0 : null });
    const focus = /** @type {HTMLElement | null} */ (root.activeElement);
    const name = focus && this.stages.contains(focus) ? focus.dataset.stage : "";
    this.stages.replaceChildren(...stages.map((stage, n) => this.stage(stage, n, path)));
    const same = name ? this.stages.querySelector(`[data-stage="${name}"]`) : null;
    if (same instanceof HTMLElement) same.focus();
    this.draw(path, each);
    if (this.parts !== parts) this.scroll.scrollLeft = each * ((parts ?? 0) - 1);
    this.parts = parts;
    const before = "Up to here, both engines give this row the same values.";
    this.note.textContent = parts !== null && parts > 1 ? before : "";
  }

  /**
   * @param {Stage} stage
   * @param {number} n
   * @param {Track} path
   */
  stage({ name, correct, faulty = "" }, n, { parts, open }) {
    const { board } = this;
    const { covered } = board.data;
    const differs = parts !== null && n >= parts;
    return button(
      {
        class: `stage${n === parts ? " parts" : ""}`,
        "data-stage": name,
        "aria-pressed": open === name ? "true" : "false",
        title: covered ? null : `Show the stage ${name} row by row`,
        disabled: covered,
      },
      () => board.put({ do: "stage", stage: open === name ? "" : name }),
      html("code", { text: name }),
      sign("correct", "on-top"),
      html("b", { text: correct }),
      ...(differs
        ? [sign("faulty", "lower"), html("b", { class: "faulty-text", text: faulty })]
        : []),
    );
  }

  /**
   * @param {Track} path
   * @param {number} each  the width of a stage
   */
  draw({ stages, parts }, each) {
    const width = each * stages.length;
    set(this.tracks, { width, height: LOW + 20 });
    const lines = [svg("path", { class: "correct-track", d: `M10,${TOP} H${width - 20}` })];
    if (parts !== null) {
      const to = each * parts + 10;
      const from = Math.max(to - 0.6 * each, 10);
      const middle = (from + to) / 2;
      const curve = parts
        ? `M${from},${TOP} C${middle + 8},${TOP} ${middle - 8},${LOW} ${to},${LOW}`
        : `M${to},${LOW}`;
      lines.push(svg("path", { class: "faulty-track", d: `${curve} H${width - 20}` }));
    }
    this.tracks.replaceChildren(...lines);
  }
}
