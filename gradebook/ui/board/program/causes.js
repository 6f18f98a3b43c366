// Causes, drawn at the left axis: which lines each engine compares with
// each other and where their baseline is, which lines have a say, and how
// long the divisor is.
//
// One engine's brackets open to the right and are solid (correct), the
// other's open to the left and are dashed (faulty). What both engines do
// alike is drawn once, in grey.

import { Kept, set, svg } from "./dom.js";
import { alike } from "./memo.js";
import { roundUp } from "./scale.js";

/** @import { Board } from "./board.js" */
/** @import { Axis } from "./scale.js" */
/** @import { Cause, Value } from "./types.js" */

const SEEN = 14; // pixels that the longest divisor gets at least

/**
 * @typedef {object} Group  lines that one engine compares
 * @property {number[]} lines
 * @property {Value[]} at
 * @property {boolean[]} counts
 * @property {Value[] | null} scale
 */

export class Causes {
  /** @param {Board} board */
  constructor(board) {
    this.board = board;
    const layer = svg("g", { class: "causes" });
    board.under.append(layer);
    this.kept = new Kept(layer);
    /** How many times as long as they are all divisors are drawn. */
    this.times = 1;
  }

  /** @param {number} length */
  render(length) {
    this.times = this.magnified();
    const [correct, faulty] = this.board.data.causes.map(groups);
    for (const group of correct ?? []) {
      const twin = faulty?.find((other) => together(group, other));
      this.bracket(group, twin ? "both" : "correct", length);
      if (!group.scale) continue;
      const equal = twin && alike(twin.scale, group.scale);
      this.bars(group, equal ? "both" : "correct", length);
    }
    for (const group of faulty ?? []) {
      const twin = correct.find((other) => together(group, other));
      if (!twin) this.bracket(group, "faulty", length);
      if (group.scale && !(twin && alike(twin.scale, group.scale)))
        this.bars(group, "faulty", length);
    }
    this.before();
    this.kept.sweep();
  }

  /** Where a changed value was in the case as it came. */
  before() {
    const { board } = this;
    if (board.layout.plain) return;
    board.data.handles.before.forEach((value, line) => {
      if (value === null || value === board.value(line)) return;
      const ring = this.kept.get(`before ${line}`, () => svg("circle", { r: 5, class: "before" }));
      set(ring, { cx: board.handleAxis.at(value), cy: (line + 0.5) * board.layout.line });
    });
  }

  /**
   * @param {Group} group
   * @param {"both" | "correct" | "faulty"} kind
   * @param {number} length
   */
  bracket({ lines, at, counts }, kind, length) {
    const { board } = this;
    const places = at.flatMap((value) => (value === null ? [] : [board.causeAxis.at(value)]));
    if (places.length < at.length) return;
    const key = `${kind} ${lines.join()}`;
    const path = this.kept.get(key, () => svg("path"));
    const near = lines.includes(board.selected) ? " near" : "";
    set(path, { class: `bracket ${kind}${near}` });
    const height = board.layout.line;
    const serif = (kind === "faulty" ? -1 : 1) * 6;
    board.glide.to(key, places, length, (now) => {
      const first = lines[0] * height + 3;
      const last = (lines[lines.length - 1] + 1) * height - 3;
      let d = `M${now[0] + serif},${first} H${now[0]}`;
      lines.forEach((line, i) => {
        // If the baseline is another one, the bracket changes its place.
        if (i && now[i] !== now[i - 1]) d += ` V${line * height} H${now[i]}`;
        d += ` V${(line + 0.5) * height}`;
        if (counts[i]) d += ` h${serif * 0.7} h${-serif * 0.7}`;
      });
      d += ` V${last} h${serif}`;
      set(path, { d });
    });
  }

  /** 1, or a round number if the longest divisor would be too short to see. */
  magnified() {
    const { data, causeAxis: axis } = this.board;
    const sizes = data.causes.flatMap(({ at, scale = [] }) =>
      scale.map((size, line) => pixels(axis, at[line] ?? 0, size ?? 0)),
    );
    const longest = Math.max(0, ...sizes);
    return longest > 1e-9 && longest < SEEN ? roundUp(SEEN / longest) : 1;
  }

  /**
   * The divisor: a bar from the baseline, as long as it is large. One for
   * a group, or one a line if it differs within the group.
   * @param {Group} group
   * @param {"both" | "correct" | "faulty"} kind
   * @param {number} length
   */
  bars({ lines, at, scale }, kind, length) {
    const { board } = this;
    const sizes = scale ?? [];
    const height = board.layout.line;
    const single = sizes.every((size) => size === sizes[0]) && at.every((x) => x === at[0]);
    lines.forEach((line, i) => {
      const size = sizes[i];
      if ((single && i < lines.length - 1) || size === null) return;
      const key = `bar ${kind} ${line}`;
      const bar = this.kept.get(key, () => svg("path"));
      set(bar, { class: `divisor ${kind}` });
      const start = at[i] ?? 0;
      const from = board.causeAxis.at(start);
      const long = this.times * pixels(board.causeAxis, start, size);
      // If there is no room on the right, the bar goes to the left.
      const place = [from, from + long > board.causeAxis.right ? from - long : from + long];
      const y = (line + 1) * height - (kind === "faulty" ? 5 : 10);
      board.glide.to(key, place, length, ([a, b]) =>
        set(bar, { d: `M${a},${y} H${b} M${b},${y - 4} V${y + 4}` }),
      );
    });
  }
}

/**
 * How long a bar of this size from the baseline is on the axis.
 * @param {Axis} axis
 * @param {number} at
 * @param {number} size
 */
const pixels = (axis, at, size) => axis.at(at + size) - axis.at(at);

/**
 * Both engines compare the same lines, at the same baselines.
 * @param {Cause[]} causes
 */
export function sameGroups(causes) {
  const [correct = [], faulty = []] = causes.map(groups);
  return (
    correct.length === faulty.length && correct.every((group, i) => together(group, faulty[i]))
  );
}

/**
 * Two groups that are drawn alike, the divisor aside.
 * @param {Group} a
 * @param {Group} b
 */
const together = (a, b) =>
  alike(a.lines, b.lines) && alike(a.at, b.at) && alike(a.counts, b.counts);

/**
 * An engine's groups.
 * @param {Cause} cause
 * @returns {Group[]}
 */
function groups({ group: labels, at, say, counts = say, scale }) {
  /** @type {Map<number, Group>} */
  const byLabel = new Map();
  labels.forEach((label, line) => {
    if (label < 0) return;
    let group = byLabel.get(label);
    if (!group) {
      group = { lines: [], at: [], counts: [], scale: scale ? [] : null };
      byLabel.set(label, group);
    }
    group.lines.push(line);
    group.at.push(at[line]);
    group.counts.push(counts[line] === "1");
    if (scale) group.scale?.push(scale[line]);
  });
  return [...byLabel.values()];
}
