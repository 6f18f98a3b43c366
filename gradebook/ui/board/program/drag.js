// Dragging a reward's handle, with a mouse, a pen or a finger.

import { minus, parsed, short } from "./scale.js";

// What an arrow key does to a value.
export const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 };

export function dragging(board) {
  const { list } = board;
  list.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const handle = event.target.closest?.(".handle");
    if (handle) hold(board, handle, event);
  });
}

function hold(board, handle, event) {
  event.preventDefault();
  const row = Number(handle.dataset.row);
  const start = board.value(row) ?? 0;
  const left = board.list.getBoundingClientRect().left;
  const offset = event.clientX - left - board.reward.at(start);
  const gesture = board.outbox.newGesture();
  let moved = false;
  handle.focus({ preventScroll: true });
  board.held = { row, value: start };

  const move = (now) => {
    const place = now.clientX - left - offset;
    const value = board.reward.snapped(place);
    if (!moved && Math.abs(now.clientX - event.clientX) < 2) return;
    moved = true;
    if (value === board.held.value) return;
    board.held = { row, value };
    set(board, row, value, gesture);
  };
  const drop = () => {
    board.held = null;
    if (moved) board.outbox.finish();
    else board.put({ do: "select", row });
    board.render(0);
  };
  follow(handle, event, move, drop);
}

const ENDS = ["pointerup", "pointercancel", "lostpointercapture"];

// Calls `move` with each of the hand's moves, and `drop` when it lets go.
export function follow(target, { pointerId }, move, drop) {
  const end = () => {
    target.removeEventListener("pointermove", move);
    for (const name of ENDS) target.removeEventListener(name, end);
    drop();
  };
  target.setPointerCapture(pointerId);
  target.addEventListener("pointermove", move);
  for (const name of ENDS) target.addEventListener(name, end);
}

export function set(board, row, value, gesture) {
  const text = short(value);
  board.put({ do: "cell", row, column: "reward", value: text, gesture });
  const input = board.rows.all.get(row)?.querySelector("[data-column=reward]");
  if (input && parsed(input.value) !== value) input.value = minus(text);
  board.rows.redraw(row); // the marks stand until the answer is there
}
