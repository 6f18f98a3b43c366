// The board's entry: Streamlit calls `draw` whenever the data change.

import { Board } from "./board.js";
import { server } from "./messages.js";

/** @import { Component, Data, Message } from "./types.js" */

/** @type {WeakMap<ShadowRoot, Board>} */
const boards = new WeakMap(); // by the element that Streamlit gives

/** @param {Component} component */
export function draw(component) {
  const root = component.parentElement;
  let board = boards.get(root);
  if (!board) boards.set(root, (board = new Board(root, { ask })));
  board.tell = (answer) => component.setStateValue("answered", { ...answer, at: Date.now() });
  board.update(component.data[0]);
  // Streamlit may clean up after an earlier call while the board lives on.
  return () => {
    const host = root.host ?? root;
    if (!host.isConnected) board.stop();
  };
}

/**
 * What the board shows after the edits of a message; null if the server is away.
 * @param {Message} message
 * @returns {Promise<Data | null>}
 */
async function ask(message) {
  const body = JSON.stringify(message);
  const answer = await fetch(server(message.epoch), { method: "POST", body }).catch(() => null);
  return answer?.ok ? answer.json() : null;
}
