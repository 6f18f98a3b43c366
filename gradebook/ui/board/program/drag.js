// Dragging a handle, with a mouse, a pen or a finger.

import { within } from "./dom.js";

/** @import { Board } from "./board.js" */

/**
 * What an arrow key does to a value.
 * @type {Record<string, number>}
 */
export const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 };

/** @param {Board} board */
export function dragging(board) {
  board.list.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const handle = within(event, ".handle");
    if (handle && !board.isFixed(Number(handle.dataset.line))) hold(board, handle, event);
  });
}

/**
 * @param {Board} board
 * @param {HTMLElement} handle
 * @param {PointerEvent} event
 */
function hold(board, handle, event) {
  event.preventDefault();
  const line = Number(handle.dataset.line);
  const start = board.value(line) ?? 0;
  const left = board.list.getBoundingClientRect().left;
  const offset = event.clientX - left - board.handleAxis.at(start);
  const gesture = board.newGesture();
  let moved = false;
  handle.focus({ preventScroll: true });
  board.hold(line, start);

  /** @param {PointerEvent} now */
  const move = (now) => {
    const value = board.snapped(now.clientX - left - offset);
    if (!moved && Math.abs(now.clientX - event.clientX) < 2) return;
    moved = true;
    if (value !== board.value(line)) board.move(line, value, gesture);
  };
  follow(handle, event, move, () => board.release(line, moved));
}

const ENDS = ["pointerup", "pointercancel", "lostpointercapture"];

/**
 * Calls `move` with each of the hand's moves, and `drop` when it lets go.
 * @param {Element} target
 * @param {PointerEvent} start
 * @param {(now: PointerEvent) => void} move
 * @param {() => void} drop
 */
export function follow(target, { pointerId }, move, drop) {
  /** @param {Event} event */
  const moved = (event) => move(/** @type {PointerEvent} */ (event));
  const end = () => {
    target.removeEventListener("pointermove", moved);
    for (const name of ENDS) target.removeEventListener(name, end);
    drop();
  };
  target.setPointerCapture(pointerId);
  target.addEventListener("pointermove", moved);
  for (const name of ENDS) target.addEventListener(name, end);
}
