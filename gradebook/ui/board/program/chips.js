// The response mask as chips: filled if a token is unmasked. In a row
// they are painted by clicking or dragging over them; for the selected row
// they are repeated below as buttons, large enough for keys and fingers.

import { button, html, set, svg, within } from "./dom.js";
import { follow } from "./drag.js";

/** @import { Board } from "./board.js" */

const INSET = 10; // pixels between the cell's edge and the first chip

/** The chips of a row, drawn as two paths. */
export class Chips {
  /**
   * @param {number} row
   * @param {number} line
   */
  constructor(row, line) {
    this.row = row;
    this.full = svg("path", { class: "full" });
    this.empty = svg("path", { class: "empty" });
    const look = { class: "mask", role: "img", "data-row": row, "data-line": line };
    this.element = svg("svg", look, this.full, this.empty);
  }

  /**
   * @param {string} bits
   * @param {number} width
   * @param {number} height
   */
  draw(bits, width, height) {
    const size = pitch(width, bits.length);
    const side = Math.min(size - (size > 8 ? 3 : 1), 12);
    const middle = height / 2;
    /** @param {number} token */
    const chip = (token) => {
      const x = INSET + token * size + (size - side) / 2;
      return `M${x},${middle - side / 2}h${side}v${side}h${-side}z`;
    };
    const tokens = [...Array(bits.length).keys()];
    /** @param {string} bit */
    const those = (bit) => tokens.filter((token) => bits[token] === bit);
    set(this.element, { width, height, "aria-label": spoken(this.row, bits) });
    set(this.full, { d: those("1").map(chip).join("") });
    set(this.empty, { d: those("0").map(chip).join("") });
  }
}

/**
 * @param {number} width
 * @param {number} count
 */
const pitch = (width, count) => Math.min((width - 2 * INSET) / Math.max(count, 1), 15);

/**
 * @param {number} row
 * @param {string} bits
 */
const spoken = (row, bits) =>
  `response mask of row ${row}: ${[...bits].filter((b) => b === "1").length}` +
  ` of ${bits.length} tokens unmasked`;

/** @param {Board} board */
export function painting(board) {
  board.list.addEventListener("pointerdown", (event) => {
    const mask = within(event, ".mask");
    const row = Number(mask?.dataset.row);
    if (!mask || event.button || !board.isOpen(row)) return;
    event.preventDefault();
    if (board.data.lines) return paintLines(board, mask, Number(mask.dataset.line), event);
    const { left, width } = mask.getBoundingClientRect();
    const count = board.bits(row).length;
    /** @param {PointerEvent} now */
    const token = (now) => {
      const at = Math.floor((now.clientX - left - INSET) / pitch(width, count));
      return Math.min(Math.max(at, 0), count - 1);
    };
    paint(board, mask, row, token, event);
  });
}

/**
 * One stroke over lines: their tokens become what the first one became.
 * @param {Board} board
 * @param {Element} target
 * @param {number} start
 * @param {PointerEvent} event
 */
function paintLines(board, target, start, event) {
  const { row, first } = board.lines[start];
  const value = board.bits(row)[first ?? 0] !== "1";
  const gesture = board.newGesture();
  const { top } = board.list.getBoundingClientRect();
  let last = start;
  /** @param {number} line */
  const put = (line) => {
    const { row: of, first: from, last: to } = board.lines[line] ?? {};
    if (of === undefined || typeof from !== "number") return;
    board.put({ do: "mask", row: of, start: from, stop: (to ?? from) + 1, value, gesture });
  };
  put(start);
  /** @param {PointerEvent} now */
  const move = (now) => {
    const line = Math.floor((now.clientY - top) / board.layout.line);
    if (line === last || !board.lines[line]) return;
    put(line);
    last = line;
  };
  follow(target, event, move, () => board.finish());
}

/**
 * One stroke: the first chip changes, and each chip that the hand comes
 * over becomes what the first one became.
 * @param {Board} board
 * @param {Element} target
 * @param {number} row
 * @param {(now: PointerEvent) => number} token
 * @param {PointerEvent} event
 */
function paint(board, target, row, token, event) {
  const first = token(event);
  const value = board.bits(row)[first] !== "1";
  const gesture = board.newGesture();
  let last = first;
  /**
   * @param {number} start
   * @param {number} stop
   */
  const put = (start, stop) => {
    board.put({ do: "mask", row, start, stop, value, gesture });
    board.soon();
  };
  put(first, first + 1);
  /** @param {PointerEvent} now */
  const move = (now) => {
    const at = token(now);
    if (at === last) return;
    put(Math.min(at, last), Math.max(at, last) + 1);
    last = at;
  };
  follow(target, event, move, () => board.finish());
}

/**
 * The selected row's chips as buttons.
 * @param {Board} board
 * @param {number} row
 */
export function buttons(board, row) {
  const bits = board.bits(row);
  const group = html("div", {
    class: "chips",
    role: "group",
    "aria-label": spoken(row, bits),
  });
  // A board of tokens counts them as its lines do.
  const first = board.data.lines ? 0 : 1;
  [...bits].forEach((bit, token) => {
    const turn = () => {
      const value = board.bits(row)[token] !== "1";
      board.put({ do: "mask", row, start: token, stop: token + 1, value });
      board.soon();
    };
    const look = {
      class: "chip",
      "aria-pressed": bit === "1" ? "true" : "false",
      "aria-label": `token ${token + first}`,
      text: String(token + first),
    };
    group.append(button(look, turn));
  });
  return group;
}
