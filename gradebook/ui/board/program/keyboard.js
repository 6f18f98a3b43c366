// Keys: the whole board works without a mouse.
//
// On a handle: arrows move the reward, with Shift by ten times as much,
// Home and End go to the axis' ends, Page Up and Page Down to another row.
// In a cell: Enter and the vertical arrows go to another row, Escape brings
// back what stood there. Anywhere: Ctrl+Z and Ctrl+Shift+Z, Alt with a
// vertical arrow moves the row, Ctrl+D duplicates it.

import { set, STEPS } from "./drag.js";
import { round } from "./scale.js";

export function keyboard(board) {
  let moving = null; // {row, gesture} while a key holds a handle in motion

  board.whole.addEventListener("keydown", (event) => {
    const { target, key } = event;
    if (command(board, event)) return;
    if (target.matches(".handle")) {
      if (key === "PageUp" || key === "PageDown") {
        event.preventDefault();
        go(board, target, key === "PageUp" ? -1 : 1, ".handle");
        return;
      }
      const value = moved(board, target, event);
      if (value === null) return;
      event.preventDefault();
      const row = Number(target.dataset.row);
      if (moving?.row !== row) moving = { row, gesture: board.outbox.newGesture() };
      board.held = { row, value };
      set(board, row, value, moving.gesture);
    } else if (target.matches(".row input[type=text]")) {
      cell(board, event);
    } else if (target.matches(".row input[type=checkbox]") && STEPS[key]) {
      event.preventDefault();
      go(board, target, STEPS[key] * (key.endsWith("Left") || key.endsWith("Right") ? 1 : -1));
    }
  });

  const settle = () => {
    if (!moving) return;
    moving = null;
    board.held = null;
    board.outbox.finish();
    board.render(0);
  };
  board.whole.addEventListener("keyup", settle);
  board.list.addEventListener("focusout", settle);
}

// Keys that act on the selected row or the history, wherever the focus is
// in the board. A text field keeps its own undo.
function command(board, event) {
  const { key, target, altKey, shiftKey } = event;
  const row = board.selected;
  const control = event.ctrlKey || event.metaKey;
  const last = board.data.rows.length - 1;
  let edit = null;
  if (control && key.toLowerCase() === "z" && !target.matches("input[type=text], textarea"))
    edit = { do: shiftKey ? "redo" : "undo" };
  else if (control && key.toLowerCase() === "d") edit = { do: "add", row };
  else if (altKey && key === "ArrowUp" && row > 0) edit = { do: "move", row, to: row - 1 };
  else if (altKey && key === "ArrowDown" && row < last) edit = { do: "move", row, to: row + 1 };
  if (!edit) return false;
  event.preventDefault();
  board.put(edit);
  return true;
}

// The value to which a key moves the handle, or null for another key.
function moved(board, handle, { key, shiftKey }) {
  const axis = board.reward;
  const row = Number(handle.dataset.row);
  if (key === "Home") return axis.ends[0];
  if (key === "End") return axis.ends[1];
  if (!STEPS[key]) return null;
  const now = board.value(row) ?? 0;
  const grain = axis.grain(axis.at(now)) * 5;
  const next = round(now + STEPS[key] * grain * (shiftKey ? 10 : 1), grain / 5);
  const [low, high] = axis.ends;
  return Math.min(Math.max(next, low), high);
}

function cell(board, event) {
  const { target, key } = event;
  if (key === "Enter" || key === "ArrowDown" || key === "ArrowUp") {
    event.preventDefault();
    const down = key === "ArrowUp" || (key === "Enter" && event.shiftKey) ? -1 : 1;
    board.rows.left(target);
    if (!go(board, target, down)) target.select();
  } else if (key === "Escape" && target.before !== undefined) {
    event.preventDefault();
    if (target.value !== target.before) {
      target.value = target.before;
      board.rows.typed(target);
      board.rows.left(target);
    }
    target.select();
  }
}

// The focus to the same place of another row.
function go(board, target, by, selector) {
  const row = Number(target.dataset.row) + by;
  if (row < 0 || row >= board.data.rows.length) return false;
  board.select(row);
  const made = board.rows.all.get(row);
  const wanted = selector ?? `[data-column="${target.dataset.column}"]`;
  made?.querySelector(wanted)?.focus();
  return Boolean(made);
}
