// Pieces of one rollout that stand together: a bracket at the left edge joins
// them, and the rollout's name stands along it once.

import { Kept, set, svg } from "./dom.js";

export const MARGIN = 17; // pixels left of the rows' numbers for the brackets
const LETTER = 6; // pixels of a letter along a bracket

export class Pieces {
  constructor(board) {
    this.board = board;
    const layer = svg("g", { class: "pieces" });
    board.under.append(layer);
    this.kept = new Kept(layer);
  }

  render() {
    const { layout, pieces } = this.board;
    const wanted = new Set();
    for (const { first, last, name } of pieces.runs) {
      const [top, bottom] = [first * layout.row + 4, (last + 1) * layout.row - 4];
      const room = Math.floor((bottom - top) / LETTER);
      const path = `bracket ${first}`;
      const label = `label ${first}`;
      wanted.add(path).add(label);
      set(
        this.kept.get(path, () => svg("path", { class: "whole" })),
        {
          d: `M${MARGIN + 4},${top} H${MARGIN} V${bottom} h4`,
        },
      );
      set(
        this.kept.get(label, () => svg("text", { "text-anchor": "middle" })),
        {
          transform: `translate(${MARGIN - 5} ${(top + bottom) / 2}) rotate(-90)`,
          text: fitted(name, room),
        },
      );
    }
    this.kept.keep(wanted);
  }
}

// Each run of neighbouring rows of one prompt and step with one rollout:
// {runs: [{first, last, name}], of: row -> its run or undefined}.
export function pieces({ columns, rows }, bands) {
  const at = columns.findIndex((c) => c.name === "rollout");
  const runs = [];
  const of = [];
  if (at >= 0)
    rows.forEach((row, r) => {
      const above = runs.at(-1);
      if (r && row[at] === rows[r - 1][at] && bands[r] === bands[r - 1]) above.last = r;
      else runs.push({ first: r, last: r, name: String(row[at]) });
      of.push(runs.at(-1));
    });
  const cut = (run) => run.last > run.first;
  return {
    runs: runs.filter(cut),
    of: of.map((run) => (cut(run) ? run : undefined)),
  };
}

function fitted(name, room) {
  const full = `rollout ${name}`;
  if (full.length <= room) return full;
  return name.length <= room ? name : `${name.slice(0, Math.max(room - 1, 1))}…`;
}
