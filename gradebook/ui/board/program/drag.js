// Dragging a reward's handle, with a mouse, a pen or a finger, and dragging
// a row by its number to another place.

import { minus, parsed, short } from "./scale.js";

export function dragging(board) {
  const { list } = board;
  list.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const handle = event.target.closest?.(".handle");
    const grip = event.target.closest?.(".grip");
    if (handle) hold(board, handle, event);
    else if (grip && !board.long) carry(board, grip, event);
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

function carry(board, grip, event) {
  const made = grip.closest(".row");
  const row = Number(made.dataset.row);
  const height = board.layout.row;
  let to = row;
  const move = (now) => {
    const down = now.clientY - event.clientY;
    if (Math.abs(down) < 6 && to === row) return;
    const last = board.data.rows.length - 1;
    to = Math.min(Math.max(row + Math.round(down / height), 0), last);
    made.classList.add("carried");
    made.style.transform = `translateY(${down}px)`;
  };
  const drop = () => {
    made.classList.remove("carried");
    made.style.transform = "";
    if (to !== row) board.put({ do: "move", row, to });
  };
  follow(grip, event, move, drop);
}
