// The path of the selected row, or token, through the stages, as a pipe: the correct
// track, and after the answer the faulty one, which leaves it where the engines part.
// Stages are in chapters. A chapter that is not open is one mark with its last number.

import { button, html, prose, set, svg } from "./dom.js";
import { sign } from "./legend.js";
import { alike } from "./memo.js";

/** @import { Board } from "./board.js" */
/** @import { Stage, Track } from "./types.js" */

const LEAST = 88; // pixels of a stage; else the path goes downwards
const MOST = 210;
const FOLD = 200; // pixels of a chapter that is one mark
const [TOP, LOW] = [10, 80]; // pixels of the tracks, below the names
const LOW_OF_TOKENS = 92; // the same, if slopes are shown
const [STEP, HEADING] = [40, 28]; // heights where the path goes downwards
const DOWN = [17, 41]; // pixels of the tracks there

/**
 * @typedef {object} Item  a stage, or a chapter that is one mark
 * @property {Stage} stage  of a chapter, its last
 * @property {number} chapter
 * @property {number} count  stages in it
 * @property {boolean} differs
 * @property {boolean} parts
 * @property {number} at  where it begins, in pixels
 * @property {number} size
 */

export class Path {
  /** @param {Board} board */
  constructor(board) {
    this.board = board;
    this.title = html("h2", { class: "path-title" });
    this.tracks = svg("svg", { class: "tracks", "aria-hidden": "true" });
    this.headings = html("div", { class: "headings" });
    this.stages = html("div", { class: "stages", role: "group", "aria-label": "Stages" });
    this.note = html("p", { class: "note quiet" });
    this.pipe = html("div", { class: "pipe" }, this.headings, this.tracks, this.stages, this.note);
    this.whole = html("section", { class: "path" }, this.title, this.pipe);
    /** @type {Set<string>} */
    this.opened = new Set(); // chapters that the reader opened, by case and title
    /** @type {unknown} */
    this.drawn = null;
  }

  render() {
    const { data, width, root, layout } = this.board;
    const { path } = data;
    this.whole.hidden = !path;
    if (!path) return;
    const full = this.whole.clientWidth || width;
    const now = [path, full, data.covered, data.names, [...this.opened], layout.narrow];
    if (alike(this.drawn, now)) return;
    this.drawn = now;
    this.entitle(path);
    const down = layout.narrow;
    const items = this.items(path, full, down);
    const many = path.chapters.length > 1;
    set(this.pipe, { class: ["pipe", many && "chapters", down && "down"] });
    const height = items.length ? items[items.length - 1].at + STEP : 0;
    this.pipe.style.height = down ? `${height}px` : "";
    const focus = /** @type {HTMLElement | null} */ (root.activeElement);
    const name = focus && this.stages.contains(focus) ? focus.dataset.stage : "";
    this.stages.replaceChildren(...items.map((item) => this.stage(item, path, down)));
    const same = name ? this.stages.querySelector(`[data-stage="${name}"]`) : null;
    if (same instanceof HTMLElement) same.focus();
    this.headings.replaceChildren(...(many ? this.headed(path, items, full, down) : []));
    this.draw(items, full, height, down);
    const parts = items.findIndex((item) => item.parts);
    const before = "Up to here, both engines give this row the same values.";
    this.note.textContent = parts > 1 && !many && !down ? before : "";
  }

  /** @param {Track} path */
  entitle({ row, token, parts }) {
    const at =
      parts === null
        ? " is the same in both engines"
        : `: the engines first differ at \`${parts}\``;
    const what = token === null ? `Row ${row}` : `Row ${row}, token ${token}`;
    const title = `${what}${this.board.data.covered ? " through the computation" : at}`;
    this.title.replaceChildren(...prose(title));
  }

  /** @param {string} title */
  key(title) {
    return `${this.board.data.name} ${title}`;
  }

  /**
   * What is drawn, from left to right, or downwards.
   * @param {Track} path
   * @param {number} full
   * @param {boolean} down
   */
  items({ chapters, parts }, full, down) {
    /** @type {Item[]} */
    const items = [];
    chapters.forEach(({ title, open, stages, result }, chapter) => {
      const folded = !open && !this.opened.has(this.key(title));
      for (const stage of folded ? [stages[result]] : stages)
        items.push({
          ...{ stage, chapter, count: folded ? stages.length : 1 },
          ...{ differs: false, parts: false, at: 0, size: 0 },
        });
    });
    const order = chapters.flatMap(({ stages }) => stages.map(({ name }) => name));
    const from = parts === null ? Infinity : order.indexOf(parts);
    let seen = 0;
    for (const item of items) {
      seen += item.count;
      const [a, b] = item.stage.texts;
      item.differs = seen > from && (item.count === 1 || a !== b || seen - item.count < from);
      item.parts = seen > from && seen - item.count <= from;
    }
    this.place(items, chapters.length > 1, full, down);
    return items;
  }

  /**
   * @param {Item[]} items
   * @param {boolean} many
   * @param {number} full
   * @param {boolean} down
   */
  place(items, many, full, down) {
    const folds = items.filter(({ count }) => count > 1).length;
    const rest = (full - FOLD * folds) / Math.max(items.length - folds, 1);
    const each = many ? Math.min(Math.max(rest, LEAST), MOST) : Math.max(rest, LEAST);
    let at = 0;
    items.forEach((item, n) => {
      if (down && many && item.chapter !== items[n - 1]?.chapter) at += HEADING;
      item.at = at;
      item.size = down ? STEP : item.count > 1 ? FOLD : each;
      at += item.size;
    });
  }

  /**
   * @param {Track} path
   * @param {Item[]} items
   * @param {number} full
   * @param {boolean} down
   */
  headed({ chapters }, items, full, down) {
    return chapters.map(({ title, open }, n) => {
      const here = items.filter(({ chapter }) => chapter === n);
      const [first, last] = [here[0], here[here.length - 1]];
      const end = Math.min(last.at + last.size, full);
      const place = down
        ? `top:${first.at - HEADING}px`
        : `left:${first.at}px;width:${end - first.at - 14}px`;
      const look = { class: ["heading", open && "open"], style: place };
      return html("div", look, html("span", { text: String(n + 1) }), ` ${title}`);
    });
  }

  /**
   * @param {Item} item
   * @param {Track} path
   * @param {boolean} down
   */
  stage({ stage, count, chapter, differs, parts, at, size }, { open, chapters }, down) {
    const { board } = this;
    const { covered } = board.data;
    const { name, texts, slopes } = stage;
    const folded = count > 1;
    const { title } = chapters[chapter];
    const act = folded
      ? () => this.open(title)
      : () => board.put({ do: "stage", stage: open === name ? "" : name });
    const plain = name === "push"; // what comes of the stages is none itself
    const tip = folded ? `Show the ${count} stages` : `Show the stage ${name} row by row`;
    const other = slopes && slopes.length > 1 && slopes[0] !== slopes[1];
    const mark = { class: `slope${other ? " other" : ""}` };
    const element = button(
      {
        class: ["stage", parts && "parts", folded && "fold", slopes && "sloped"],
        "data-stage": name,
        "aria-pressed": open === name ? "true" : "false",
        title: covered && !folded ? null : tip,
        disabled: (covered || plain) && !folded,
        style: down ? `top:${at}px` : `left:${at}px;width:${size}px`,
      },
      act,
      html("code", { text: name }),
      folded ? capsule("correct", count, down) : sign("correct", "on-top"),
      html("b", { text: texts[0] }),
    );
    if (folded) element.append(html("small", { class: "count", text: `${count} stages \u25b8` }));
    else if (slopes) element.append(html("small", mark, `slope ${slopes[0]}`));
    if (!differs) return element;
    element.append(
      folded ? capsule("faulty lower", count, down) : sign("faulty", "lower"),
      html("b", { class: "faulty-text", text: texts[1] }),
    );
    if (slopes && !folded)
      element.append(
        html("small", { class: `${mark.class} faulty-text`, text: `slope ${slopes[1]}` }),
      );
    return element;
  }

  /** @param {string} title */
  open(title) {
    this.opened.add(this.key(title));
    this.render();
  }

  /**
   * @param {Item[]} items
   * @param {number} full
   * @param {number} height
   * @param {boolean} down
   */
  draw(items, full, height, down) {
    const many = this.headings.childElementCount > 0;
    const low = many ? LOW_OF_TOKENS : LOW;
    const last = items[items.length - 1];
    if (!last) return;
    const end = down ? height - 8 : Math.min(last.at + last.size, full) - 20;
    set(this.tracks, { width: full, height: down ? height : low + 20 });
    const parts = items.find((item) => item.parts);
    const begin = items[0].at + (down ? STEP / 2 : 10);
    const lines = [
      svg("path", {
        class: "correct-track",
        d: down ? `M${DOWN[0]},${begin} V${end}` : `M${begin},${TOP} H${end}`,
      }),
    ];
    if (parts) {
      const to = parts.at + (down ? STEP / 2 : 10);
      const from = Math.max(to - 0.6 * (down ? STEP : Math.min(parts.size, 130)), begin);
      lines.push(svg("path", { class: "faulty-track", d: curve(from, to, end, low, down) }));
    }
    this.tracks.replaceChildren(...lines);
  }
}

/**
 * The faulty track: it leaves the correct one at `from` and is beside it from `to` on.
 * @param {number} from
 * @param {number} to
 * @param {number} end
 * @param {number} low
 * @param {boolean} down
 */
function curve(from, to, end, low, down) {
  const middle = (from + to) / 2;
  if (down) {
    const [a, b] = DOWN;
    const way = `M${a},${from} C${a},${middle + 8} ${b},${middle - 8} ${b},${to}`;
    return `${from < to ? way : `M${b},${to}`} V${end}`;
  }
  const way = `M${from},${TOP} C${middle + 8},${TOP} ${middle - 8},${low} ${to},${low}`;
  return `${from < to ? way : `M${to},${low}`} H${end}`;
}

/**
 * A chapter as one mark: a capsule with a dot for each stage.
 * @param {string} look
 * @param {number} count
 * @param {boolean} down
 */
function capsule(look, count, down) {
  const long = 8 + 6.5 * count;
  const [width, height] = down ? [14, Math.min(long, 34)] : [long, 14];
  const step = (Math.max(width, height) - 10) / Math.max(count - 1, 1);
  const dots = [...Array(count).keys()].map((n) =>
    svg("circle", {
      class: "dot",
      r: down ? 1 : 1.6,
      cx: down ? 7 : 5 + n * step,
      cy: down ? 5 + n * step : 7,
    }),
  );
  return svg(
    "svg",
    { class: `capsule ${look}`, width, height, "aria-hidden": "true" },
    svg("rect", { x: 1, y: 1, width: width - 2, height: height - 2, rx: 6 }),
    ...dots,
  );
}
