// Causes, drawn at the reward axis: which rows each engine compares with
// each other and where their baseline lies, which rows have a say, and how
// long the divisor is.
//
// One engine's brackets open to the right and are solid (correct), the
// other's open to the left and are dashed (faulty). What both engines do
// alike is drawn once, in grey.

import { Kept, set, svg } from "./dom.js";
import { roundUp } from "./scale.js";

const SEEN = 14; // pixels that the longest divisor gets at least

export class Causes {
  constructor(board) {
    this.board = board;
    const layer = svg("g", { class: "causes" });
    board.under.append(layer);
    this.kept = new Kept(layer);
  }

  // Values that the reward axis must hold beside the rewards.
  values() {
    const { stood, causes, box } = this.board.data;
    const found = stood.filter((x) => x !== null);
    // On a bug's page the axis stands while the answer comes.
    for (const engine of box ? causes.slice(0, 1) : causes) {
      found.push(...engine.at.filter((x) => x !== null));
      engine.scale?.forEach((size, row) => {
        const at = engine.at[row] ?? 0;
        if (size !== null) found.push(at + size);
      });
    }
    return found;
  }

  render(length) {
    const { data } = this.board;
    this.times = this.magnified();
    const sides = data.causes.map(groups);
    sides.forEach((side, engine) => {
      const own = engine ? "faulty" : "correct";
      for (const [key, group] of side) {
        const other = sides[1 - engine]?.get(key);
        if (!other || !engine) this.bracket(group, other ? "both" : own, engine, length);
        if (!group.scale) continue;
        const one = other && String(other.scale) === String(group.scale);
        if (!one || !engine) this.bars(group, one ? "both" : own, engine, length);
      }
    });
    this.stood();
    this.kept.sweep();
  }

  // Where a changed reward stood in the case as it came.
  stood() {
    const { board } = this;
    board.data.stood.forEach((value, row) => {
      if (value === null || value === board.value(row)) return;
      const key = `stood ${row}`;
      const ring = this.kept.get(key, () => svg("circle", { r: 5, class: "stood" }));
      set(ring, { cx: board.reward.at(value), cy: (row + 0.5) * board.layout.row });
    });
  }

  bracket(group, kind, engine, length) {
    const { board } = this;
    const { rows, at, counts } = group;
    if (at.some((x) => x === null)) return;
    const key = `${kind} ${rows.join()}`;
    const path = this.kept.get(key, () => svg("path"));
    const near = rows.includes(board.selected) ? " near" : "";
    set(path, { class: `bracket ${kind}${near}` });
    const height = board.layout.row;
    const serif = (engine ? -1 : 1) * 6;
    const x = at.map((value) => board.reward.at(value));
    board.glide.to(key, x, length, (now) => {
      const first = rows[0] * height + 3;
      const last = (rows.at(-1) + 1) * height - 3;
      let d = `M${now[0] + serif},${first} H${now[0]}`;
      rows.forEach((row, i) => {
        const middle = (row + 0.5) * height;
        if (now[i] !== now[i - 1] && i) {
          const between = row * height;
          d += ` V${between} H${now[i]}`;
        }
        d += ` V${middle}`;
        if (counts[i]) d += ` h${serif * 0.7} h${-serif * 0.7}`;
      });
      d += ` V${last} h${serif}`;
      set(path, { d });
    });
  }

  // How many times as long as they are all divisors are drawn: 1, or a round
  // number where the longest would be too short to see.
  magnified() {
    const { data, reward } = this.board;
    const sizes = data.causes.flatMap(({ at, scale = [] }) =>
      scale.map((size, row) => pixels(reward, at[row] ?? 0, size ?? 0)),
    );
    const longest = Math.max(0, ...sizes);
    return longest > 1e-9 && longest < SEEN ? roundUp(SEEN / longest) : 1;
  }

  // The divisor: a bar from the baseline, as long as it is large. One for
  // a group, or one a row where it differs within the group.
  bars(group, kind, engine, length) {
    const { board } = this;
    const { rows, at, scale } = group;
    const height = board.layout.row;
    const one = scale.every((s) => s === scale[0]) && at.every((x) => x === at[0]);
    rows.forEach((row, i) => {
      if ((one && i < rows.length - 1) || scale[i] === null) return;
      const key = `bar ${kind} ${row}`;
      const bar = this.kept.get(key, () => svg("path"));
      set(bar, { class: `divisor ${kind}` });
      const start = at[i] ?? 0;
      const from = board.reward.at(start);
      const long = this.times * pixels(board.reward, start, scale[i]);
      // Where there is no room on the right, the bar goes to the left.
      const place = [from, from + long > board.reward.right ? from - long : from + long];
      const y = (row + 1) * height - (engine ? 5 : 10);
      board.glide.to(key, place, length, ([a, b]) =>
        set(bar, { d: `M${a},${y} H${b} M${b},${y - 4} V${y + 4}` }),
      );
    });
  }
}

// How long a bar of this size from the baseline is on the axis.
const pixels = (axis, at, size) => axis.at(at + size) - axis.at(at);

// Both engines compare the same rows, at the same baselines.
export function alike(causes) {
  const [one, other] = causes.map((cause) => [...groups(cause).keys()].join());
  return one === other;
}

// An engine's groups, by what is drawn of them, the divisor aside.
function groups({ group, at, say, counts = say, scale }) {
  const found = new Map();
  group.forEach((label, row) => {
    if (label < 0) return;
    if (!found.has(label)) found.set(label, { rows: [], at: [], counts: [], scale: scale && [] });
    const one = found.get(label);
    one.rows.push(row);
    one.at.push(at[row]);
    one.counts.push(counts[row] === "1");
    one.scale?.push(scale[row]);
  });
  return new Map(
    [...found.values()].map((one) => [JSON.stringify([one.rows, one.at, one.counts]), one]),
  );
}
