// Both engines' results: a filled circle for correct, an open diamond for
// faulty, a line between them where they differ, and ghosts where they
// stood in the case as it came.

import { Kept, set, svg } from "./dom.js";

const DIAMOND = "M0,-7.5 L7.5,0 L0,7.5 L-7.5,0 Z";
const SMALL = "M0,-5 L5,0 L0,5 L-5,0 Z";

export class Marks {
  constructor(board) {
    this.board = board;
    this.layers = Object.fromEntries(
      ["ranges", "ghosts", "arrows", "links", "circles", "diamonds", "words"]
        .map((name) => [name, svg("g", { class: name })]),
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
    this.board.glide.keep(
      new Set([...wanted, ...this.board.causes.wanted]),
    );
  }

  row(panel, p, row, y, length, wanted) {
    const { board, kept } = this;
    const axis = board.panels[p];
    const [correct, faulty] = panel.engines.map((values) => values?.[row]);
    const key = `${p}.${row}`;
    if (correct === null || correct === undefined) return;
    const xc = axis.at(correct);
    const known = faulty !== null && faulty !== undefined;
    const xf = known ? axis.at(faulty) : xc;
    const flip = known && panel.flips.includes(row);
    const differ = known && panel.differ.includes(row);
    wanted.add(key);
    const circle = kept.circles.get(key, () =>
      svg("circle", { r: 5.5, class: "correct" }));
    const diamond = known && kept.diamonds.get(key, () =>
      svg("path", { d: DIAMOND, class: "faulty" }));
    const link = differ && kept.links.get(key, () =>
      svg("rect", { width: 1, height: 1 }));
    const word = flip && kept.words.get(key, () =>
      svg("text", { text: "flips" }));
    set(circle, { "data-row": row, "data-value": correct });
    if (known) set(diamond, { "data-row": row, "data-value": faulty });
    else remove(kept.diamonds, key);
    if (!differ) remove(kept.links, key);
    if (!flip) remove(kept.words, key);
    if (link) set(link, { class: flip ? "flip" : "" });
    this.ghosts(panel, p, row, y, wanted);
    const second = this.second(panel, p, row);
    board.glide.to(key, [xc, xf, y], length, ([c, f, at]) => {
      set(circle, { transform: `translate(${c} ${at})` });
      if (diamond) set(diamond, { transform: `translate(${f} ${at})` });
      if (link) {
        const thick = flip ? 4 : 1.5;
        set(link, {
          transform: `translate(${Math.min(c, f)} ${at - thick / 2})`
            + ` scale(${Math.abs(c - f)} ${thick})`,
        });
      }
      if (word) {
        const right = Math.max(c, f);
        const fits = right + 46 < axis.right + 14;
        set(word, {
          x: fits ? right + 12 : Math.min(c, f) - 12,
          y: at + 4, "text-anchor": fits ? "start" : "end",
        });
      }
      if (second) this.arrows(second, row, [c, f], at);
    });
    if (!second) for (const e of [0, 1]) remove(kept.arrows, `${row}.${e}`);
    else for (const e of [0, 1]) wanted.add(`${row}.${e}`);
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
        svg("path", { class: engine ? "faulty" : "correct" }));
      const lift = y + (engine ? 9 : -9);
      const back = Math.sign(from - to);
      const tip = to + back * 3;
      set(arrow, {
        d: `M${from},${lift - 3} V${lift + 3} M${from},${lift} H${tip}`
          + ` M${tip + back * 5},${lift - 3.5} L${tip},${lift}`
          + ` L${tip + back * 5},${lift + 3.5}`,
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
          : svg("circle", { r: 4, class: "correct" }));
      set(ghost, { transform: `translate(${axis.at(before)} ${y})` });
    });
    const range = panel.ranges?.[row];
    if (!range) return;
    const key = `${p}.${row}.range`;
    wanted.add(key);
    const bar = this.kept.ranges.get(key, () =>
      svg("rect", { height: 12, rx: 3 }));
    const [low, high] = range.map((x) => axis.at(x));
    set(bar, { x: low - 2, y: y - 6, width: high - low + 4 });
  }
}

function remove(kept, key) {
  kept.all.get(key)?.remove();
  kept.all.delete(key);
}
