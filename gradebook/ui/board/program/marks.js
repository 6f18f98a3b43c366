// Both engines' results: a filled circle for correct, an open diamond for
// faulty, a line between them where they differ, and ghosts where they
// stood in the case as it came.

import { Kept, set, svg } from "./dom.js";
import { ends } from "./layout.js";
import { Axis } from "./scale.js";

export const BIG = "M0,-10 L10,0 L0,10 L-10,0 Z";
export const DIAMOND = "M0,-7.5 L7.5,0 L0,7.5 L-7.5,0 Z";
const AWAY = "M-7,-6 L-1,0 L-7,6 M0,-6 L6,0 L0,6";
const BACK = "M7,-6 L1,0 L7,6 M0,-6 L-6,0 L0,6";
const SMALL = "M0,-5 L5,0 L0,5 L-5,0 Z";

export class Marks {
  constructor(board) {
    this.board = board;
    this.layers = Object.fromEntries(
      ["ranges", "ghosts", "arrows", "links", "circles", "diamonds"].map((name) => [
        name,
        svg("g", { class: name }),
      ]),
    );
    board.over.append(...Object.values(this.layers));
    this.kept = Object.fromEntries(
      Object.entries(this.layers).map(([n, layer]) => [n, new Kept(layer)]),
    );
  }

  render(length) {
    const wanted = new Set();
    const { data, shown, layout } = this.board;
    data.panels.forEach((panel, p) => {
      for (let row = shown[0]; row < shown[1]; row++) {
        const y = (row + 0.5) * layout.row;
        this.row(panel, p, row, y, length, wanted);
      }
    });
    for (const kept of Object.values(this.kept)) kept.keep(wanted);
    this.wanted = wanted;
    this.board.glide.keep(new Set([...wanted, ...this.board.causes.wanted, ...this.board.gridded]));
  }

  row(panel, p, row, y, length, wanted) {
    const { board, kept } = this;
    const axis = board.panels[p];
    const [correct, faulty] = panel.engines.map((values) => values?.[row]);
    const key = `${p}.${row}`;
    if (correct === null || correct === undefined) return;
    const xc = axis.at(correct);
    const known = faulty !== null && faulty !== undefined;
    const { box, numbers } = board.data;
    const asked = box?.row === row && p === numbers ? " asked" : "";
    // The diamond sets out from the blue dot.
    const xf = known && !(asked && board.reveal.stage === 0) ? axis.at(faulty) : xc;
    const flip = known && panel.flips.includes(row);
    const differ = known && panel.differ.includes(row);
    wanted.add(key);
    const circle = kept.circles.get(key, () => svg("circle", { r: 5.5, class: "correct" }));
    const diamond =
      known && kept.diamonds.get(key, () => svg("path", { d: DIAMOND, class: "faulty" }));
    const link = differ && kept.links.get(key, () => svg("rect", { width: 1, height: 1 }));
    const look = { "data-row": row, class: `correct${asked}` };
    set(circle, { ...look, "data-value": correct });
    const off = known && !axis.holds(faulty) && Math.sign(faulty);
    if (known)
      set(diamond, {
        ...look,
        class: `faulty${asked}`,
        "data-value": faulty,
        d: off ? (off > 0 ? AWAY : BACK) : asked ? BIG : DIAMOND,
      });
    else remove(kept.diamonds, key);
    if (!differ) remove(kept.links, key);
    if (link) set(link, { class: `${flip ? "flip" : ""}${asked}` });
    this.ring(panel, p, row, correct, y, wanted);
    this.ghosts(panel, p, row, y, wanted);
    const second = this.second(panel, p, row);
    board.glide.to(key, [xc, xf, y], length, ([c, f, at]) => {
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
      if (second) this.arrows(second, row, [c, f], at);
    });
    if (!second) for (const e of [0, 1]) remove(kept.arrows, `${row}.${e}`);
    else for (const e of [0, 1]) wanted.add(`${row}.${e}`);
  }

  // Where the blue dot of the question stood before the axis widened.
  ring(panel, p, row, correct, y, wanted) {
    const { data, reveal, layout } = this.board;
    const key = `${p}.${row}.ring`;
    const [before, now] = panel.reach;
    const asked = data.box?.verdict && data.box.row === row && p === data.numbers;
    if (!asked || !reveal.wide || now === before || data.edited) return;
    const old = new Axis([-before, before], null, ...ends(layout, `panel ${p}`));
    if (Math.abs(old.at(correct) - this.board.panels[p].at(correct)) < 3) return;
    wanted.add(key);
    const ring = this.kept.ghosts.get(key, () => svg("circle", { r: 7, class: "ring" }));
    set(ring, { cx: old.at(correct), cy: y });
  }

  // Where each engine's result stood before its second normalization.
  second(panel, p, row) {
    const { data } = this.board;
    if (p || !data.second) return null;
    return data.second.map((values) => values?.[row] ?? null);
  }

  arrows(second, row, now, y) {
    const axis = this.board.panels[0];
    second.forEach((value, engine) => {
      const key = `${row}.${engine}`;
      const from = value === null ? null : axis.at(value);
      const to = now[engine];
      if (from === null || Math.abs(to - from) < 10) {
        remove(this.kept.arrows, key);
        return;
      }
      const arrow = this.kept.arrows.get(key, () =>
        svg("path", { class: engine ? "faulty" : "correct" }),
      );
      const lift = y + (engine ? 9 : -9);
      const back = Math.sign(from - to);
      const tip = to + back * 3;
      set(arrow, {
        d:
          `M${from},${lift - 3} V${lift + 3} M${from},${lift} H${tip}` +
          ` M${tip + back * 5},${lift - 3.5} L${tip},${lift}` +
          ` L${tip + back * 5},${lift + 3.5}`,
      });
    });
  }

  // Ghosts, and the range of the draws.
  ghosts(panel, p, row, y, wanted) {
    const axis = this.board.panels[p];
    panel.engines.forEach((values, engine) => {
      const before = panel.ghosts?.[engine]?.[row];
      const key = `${p}.${row}.${engine}`;
      const known = before !== null && before !== undefined;
      if (!known || before === values?.[row]) return;
      wanted.add(key);
      const ghost = this.kept.ghosts.get(key, () =>
        engine
          ? svg("path", { d: SMALL, class: "faulty" })
          : svg("circle", { r: 4, class: "correct" }),
      );
      set(ghost, { transform: `translate(${axis.at(before)} ${y})` });
    });
    const range = panel.ranges?.[row];
    if (!range) return;
    const key = `${p}.${row}.range`;
    wanted.add(key);
    const bar = this.kept.ranges.get(key, () => svg("rect", { height: 12, rx: 3 }));
    const [low, high] = range.map((x) => axis.at(x));
    set(bar, { x: low - 2, y: y - 6, width: high - low + 4 });
  }
}

function remove(kept, key) {
  kept.all.get(key)?.remove();
  kept.all.delete(key);
}
