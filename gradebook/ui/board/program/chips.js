// The response mask as chips: filled where a token is unmasked. In a row
// they are painted by clicking or dragging over them; for the selected row
// they stand below as buttons, too, large enough for keys and fingers.

import { button, html, set, svg } from "./dom.js";
import { follow } from "./drag.js";

const INSET = 10; // pixels between the cell's edge and the first chip

// The chips of a row, drawn as two paths.
export function chips(board, row) {
  const full = svg("path", { class: "full" });
  const empty = svg("path", { class: "empty" });
  const made = svg("svg", { class: "mask", role: "img", "data-row": row }, full, empty);
  made.draw = (bits) => {
    const { width } = board.layout.spans.find((s) => s.column?.kind === "tokens");
    const size = pitch(width, bits.length);
    const side = Math.min(size - (size > 8 ? 3 : 1), 12);
    const middle = board.layout.row / 2;
    const chip = (t) => {
      const x = INSET + t * size + (size - side) / 2;
      return `M${x},${middle - side / 2}h${side}v${side}h${-side}z`;
    };
    const tokens = [...Array(bits.length).keys()];
    set(made, { width, height: board.layout.row, "aria-label": spoken(row, bits) });
    for (const [path, filled] of [
      [full, true],
      [empty, false],
    ]) {
      const some = tokens.filter((t) => (bits[t] === "1") === filled);
      set(path, { d: some.map(chip).join("") });
    }
  };
  return made;
}

const pitch = (width, count) => Math.min((width - 2 * INSET) / Math.max(count, 1), 15);

const spoken = (row, bits) =>
  `response mask of row ${row}: ${[...bits].filter((b) => b === "1").length}` +
  ` of ${bits.length} tokens unmasked`;

export function painting(board) {
  board.list.addEventListener("pointerdown", (event) => {
    const mask = event.target.closest?.(".mask");
    if (!mask || event.button || !board.rows.open(Number(mask.dataset.row))) return;
    event.preventDefault();
    const row = Number(mask.dataset.row);
    const box = mask.getBoundingClientRect();
    const size = pitch(box.width, board.data.tokens);
    const token = (now) => {
      const at = Math.floor((now.clientX - box.left - INSET) / size);
      return Math.min(Math.max(at, 0), board.data.tokens - 1);
    };
    paint(board, mask, row, token, event);
  });
}

// One stroke: the first chip changes, and each chip that the hand comes
// over becomes what the first one became.
function paint(board, target, row, token, event) {
  const first = token(event);
  const value = bitsOf(board, row)[first] !== "1";
  const gesture = board.outbox.newGesture();
  let last = first;
  const put = (start, stop) => {
    board.put({ do: "mask", row, start, stop, value, gesture });
    board.soon();
  };
  put(first, first + 1);
  const move = (now) => {
    const at = token(now);
    if (at === last) return;
    put(Math.min(at, last), Math.max(at, last) + 1);
    last = at;
  };
  follow(target, event, move, () => board.outbox.finish());
}

// The mask of a row as it will be, '101...'.
export function bitsOf(board, row) {
  const { data, outbox } = board;
  const i = data.columns.findIndex((c) => c.kind === "tokens");
  return i < 0 ? "" : outbox.mask(row, data.rows[row][i]);
}

// The selected row's chips as buttons.
export function buttons(board, row) {
  const bits = bitsOf(board, row);
  const made = html("div", {
    class: "chips",
    role: "group",
    "aria-label": spoken(row, bits),
  });
  [...bits].forEach((bit, t) => {
    const turn = () => {
      const value = bitsOf(board, row)[t] !== "1";
      board.put({ do: "mask", row, start: t, stop: t + 1, value });
      board.soon();
    };
    const look = {
      class: "chip",
      "aria-pressed": bit === "1" ? "true" : "false",
      "aria-label": `token ${t + 1}`,
      text: String(t + 1),
    };
    made.append(button(look, turn));
  });
  return made;
}
