// Keys: the whole board works without a mouse.
//
// On a handle: arrows move the value, with Shift by ten times as much,
// Home and End go to the axis' ends, Page Up and Page Down to another line.
// In a cell: Enter and the vertical arrows go to another line, Escape brings
// back the earlier text. Anywhere: Ctrl+Z and Ctrl+Shift+Z take back the last edit
// of the board, and what is being typed in a cell is one; Alt with a vertical arrow
// moves the row, Ctrl+D duplicates it.

import { STEPS } from "./drag.js";
import { round } from "./scale.js";

/** @import { Board } from "./board.js" */
/** @import { Edit } from "./types.js" */

/** @param {Board} board */
export function keyboard(board) {
  /** @type {{line: number, gesture: number} | null} */
  let moving = null; // while a key holds a handle in motion

  board.whole.addEventListener("keydown", (event) => {
    const { target, key } = event;
    if (!(target instanceof HTMLElement) || command(board, event, target)) return;
    const line = Number(target.dataset.line);
    if (target.matches(".handle")) {
      if (key === "PageUp" || key === "PageDown") {
        event.preventDefault();
        go(board, line + (key === "PageUp" ? -1 : 1), ".handle");
        return;
      }
      const value = moved(board, line, event);
      if (value === null) return;
      event.preventDefault();
      if (moving?.line !== line) moving = { line, gesture: board.newGesture() };
      board.hold(line, value);
      board.move(line, value, moving.gesture);
    } else if (target instanceof HTMLInputElement && target.matches(".row [type=text]")) {
      cell(board, target, event);
    } else if (target.matches(".row [type=checkbox]") && STEPS[key]) {
      event.preventDefault();
      const sideways = key.endsWith("Left") || key.endsWith("Right");
      go(board, line + STEPS[key] * (sideways ? 1 : -1), sameColumn(target));
    }
  });

  const settle = () => {
    if (!moving) return;
    const { line } = moving;
    moving = null;
    board.release(line, true);
  };
  board.whole.addEventListener("keyup", settle);
  board.list.addEventListener("focusout", settle);
}

/**
 * Keys that act on the selected row or the history, wherever the focus is
 * in the board. Only the field for a block of rows keeps an undo of its own.
 * @param {Board} board
 * @param {KeyboardEvent} event
 * @param {Element} target
 */
function command(board, event, target) {
  const { key, altKey, shiftKey } = event;
  const row = board.row;
  const control = event.ctrlKey || event.metaKey;
  const last = board.data.rows.length - 1;
  /** @type {Edit | null} */
  let edit = null;
  if (control && key.toLowerCase() === "z" && !target.matches("textarea")) {
    const cell = target instanceof HTMLInputElement ? target : null;
    if (cell) board.leave(cell);
    // Text that was refused has changed nothing: its field gets back what holds.
    const refused = cell?.getAttribute("aria-invalid") === "true";
    if (refused && !shiftKey && board.restore(cell)) {
      event.preventDefault();
      return true;
    }
    edit = { do: shiftKey ? "redo" : "undo" };
  } else if (control && key.toLowerCase() === "d") edit = { do: "add", row };
  else if (altKey && key === "ArrowUp" && row > 0) edit = { do: "move", row, to: row - 1 };
  else if (altKey && key === "ArrowDown" && row < last) edit = { do: "move", row, to: row + 1 };
  if (!edit || board.data.fixed) return false;
  event.preventDefault();
  board.put(edit);
  return true;
}

/**
 * The value to which a key moves the handle, or null for another key.
 * @param {Board} board
 * @param {number} line
 * @param {KeyboardEvent} event
 */
function moved(board, line, { key, shiftKey }) {
  const axis = board.handleAxis;
  const now = board.value(line) ?? 0;
  const stops = board.data.fixed?.values;
  if (board.isFixed(line)) return null;
  const [low, high] = stops ? [stops[0], stops[stops.length - 1]] : axis.ends;
  if (key === "Home") return low;
  if (key === "End") return high;
  if (!STEPS[key]) return null;
  if (stops) {
    const next = stops.indexOf(now) + STEPS[key];
    return stops[Math.min(Math.max(next, 0), stops.length - 1)];
  }
  const grain = axis.grain(axis.at(now)) * 5;
  const next = round(now + STEPS[key] * grain * (shiftKey ? 10 : 1), grain / 5);
  return Math.min(Math.max(next, low), high);
}

/**
 * @param {Board} board
 * @param {HTMLInputElement} target
 * @param {KeyboardEvent} event
 */
function cell(board, target, event) {
  const { key } = event;
  if (key === "Enter" || key === "ArrowDown" || key === "ArrowUp") {
    event.preventDefault();
    const down = key === "ArrowUp" || (key === "Enter" && event.shiftKey) ? -1 : 1;
    board.leave(target);
    if (!go(board, Number(target.dataset.line) + down, sameColumn(target))) target.select();
  } else if (key === "Escape" && board.restore(target)) {
    event.preventDefault();
  }
}

/** @param {HTMLElement} target */
const sameColumn = (target) => `[data-column="${target.dataset.column}"]`;

/**
 * The focus to the same place of another line.
 * @param {Board} board
 * @param {number} line
 * @param {string} selector
 */
function go(board, line, selector) {
  if (!(line >= 0 && line < board.lines.length)) return false;
  board.select(line);
  return board.focus(line, selector);
}
