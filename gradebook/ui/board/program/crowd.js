// A class's guesses, after the reveal: a strip of marks over the row in question, where
// each learner had put the diamond. Marks at one place are piled up.

import { set, svg } from "./dom.js";

/** @import { Board } from "./board.js" */

const WIDTH = 4; // pixels of a mark, and of a place in which marks are piled up
const HEIGHT = 5; // pixels of a mark in a pile
const MOST = 14; // pixels of the highest pile: it stays over its row

export class Crowd {
  /** @param {Board} board */
  constructor(board) {
    this.board = board;
    this.layer = svg("path", { class: "crowd" });
    board.over.append(this.layer);
  }

  render() {
    const { data, layout, shown, lineInQuestion, panels } = this.board;
    const places = (!data.covered && data.crowd) || [];
    const here = places.length > 0 && lineInQuestion >= shown[0] && lineInQuestion < shown[1];
    set(this.layer, { visibility: here ? null : "hidden" });
    if (!here) return;
    const axis = panels[data.numbers];
    /** @type {Map<number, number>} */
    const piles = new Map();
    for (const place of places) {
      const inside = Math.min(Math.max(axis.at(place), axis.left), axis.right);
      const at = Math.round(inside / WIDTH) * WIDTH;
      piles.set(at, (piles.get(at) ?? 0) + 1);
    }
    const each = Math.min(HEIGHT, MOST / Math.max(...piles.values()));
    const bottom = (lineInQuestion + 0.5) * layout.line - 6;
    const marks = [...piles].map(
      ([at, count]) => `M${at},${bottom}v${-each * count}h${WIDTH - 1}v${each * count}z`,
    );
    set(this.layer, { d: marks.join("") });
  }
}
