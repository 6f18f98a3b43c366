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
    this.kept = {};
    for (const name of ["ghosts", "arrows", "links", "circles", "diamonds"]) {
      const layer = svg("g", { class: name });
      board.over.append(layer);
      this.kept[name] = new Kept(layer);
    }
  }

  render(length) {
    const { data, shown, layout } = this.board;
    data.panels.forEach((panel, p) => {
      for (let row = shown[0]; row < shown[1]; row++)
        this.row(panel, p, row, (row + 0.5) * layout.row, length);
    });
    for (const kept of Object.values(this.kept)) kept.sweep();
  }

  row(panel, p, row, y, length) {
    const { board, kept } = this;
    const axis = board.panels[p];
    const [correct, faulty] = panel.engines.map((values) => values?.[row]);
    const key = `${p}.${row}`;
    if (absent(correct)) return;
    const xc = axis.at(correct);
    const known = !absent(faulty);
    const { box, numbers } = board.data;
    const asked = box?.row === row && p === numbers ? " asked" : "";
    // The diamond sets out from the blue dot.
    const xf = known && !(asked && board.reveal.stage === 0) ? axis.at(faulty) : xc;
    const flip = known && panel.flips.includes(row);
    const differ = known && panel.differ.includes(row);
    const look = { "data-row": row, class: `correct${asked}`, "data-value": correct };
    const circle = set(
      kept.circles.get(key, () => svg("circle", { r: 5.5 })),
      look,
    );
    const diamond = known && kept.diamonds.get(key, () => svg("path"));
    const link = differ && kept.links.get(key, () => svg("rect", { width: 1, height: 1 }));
    const off = known && !axis.holds(faulty) && Math.sign(faulty);
    if (diamond)
      set(diamond, {
        ...look,
        class: `faulty${asked}`,
        "data-value": faulty,
        d: off ? (off > 0 ? AWAY : BACK) : asked ? BIG : DIAMOND,
      });
    if (link) set(link, { class: `${flip ? "flip" : ""}${asked}` });
    this.ring(panel, p, row, correct, y);
    this.ghosts(panel, p, row, y);
    const arrows = p ? [] : this.arrows(row);
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
      arrows.forEach((draw, engine) => draw([c, f][engine], at));
    });
  }

  // Where the blue dot of the question stood before the axis widened.
  ring(panel, p, row, correct, y) {
    const { data, reveal, layout } = this.board;
    const [before, now] = panel.reach;
    const asked = data.box?.verdict && data.box.row === row && p === data.numbers;
    if (!asked || !reveal.wide || now === before || data.edited) return;
    const old = new Axis([-before, before], null, ...ends(layout, `panel ${p}`));
    if (Math.abs(old.at(correct) - this.board.panels[p].at(correct)) < 3) return;
    const ring = this.kept.ghosts.get("ring", () => svg("circle", { r: 7, class: "ring" }));
    set(ring, { cx: old.at(correct), cy: y });
  }

  // From where each engine's result stood before its second normalization: what
  // draws the arrow to a place.
  arrows(row) {
    const axis = this.board.panels[0];
    return (this.board.data.second ?? []).map((values, engine) => {
      const from = absent(values[row]) ? null : axis.at(values[row]);
      const look = { class: engine ? "faulty" : "correct" };
      const arrow = this.kept.arrows.get(`${row}.${engine}`, () => svg("path", look));
      return (to, y) => {
        const lift = y + (engine ? 9 : -9);
        const back = Math.sign(from - to);
        const tip = to + back * 3;
        const far = from !== null && Math.abs(to - from) >= 10;
        const head = `${tip + back * 5},${lift - 3.5} L${tip},${lift} L${tip + back * 5},${lift + 3.5}`;
        const way = `M${from},${lift - 3} V${lift + 3} M${from},${lift} H${tip} M${head}`;
        set(arrow, { d: far ? way : "" });
      };
    });
  }

  // Where the marks stood before the edits.
  ghosts(panel, p, row, y) {
    const { board, kept } = this;
    const axis = board.panels[p];
    panel.engines.forEach((values, engine) => {
      const before = panel.ghosts?.[engine]?.[row];
      if (absent(before) || before === values?.[row]) return;
      const ghost = kept.ghosts.get(`${p}.${row}.${engine}`, () =>
        engine
          ? svg("path", { d: SMALL, class: "faulty" })
          : svg("circle", { r: 4, class: "correct" }),
      );
      set(ghost, { transform: `translate(${axis.at(before)} ${y})` });
    });
  }
}

const absent = (x) => x === null || x === undefined;
