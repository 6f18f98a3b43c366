// The board's entry: Streamlit calls `draw` whenever the data change.

import { Board } from "./board.js";

const boards = new WeakMap(); // by the element that Streamlit gives

export function draw(component) {
  const root = component.parentElement;
  if (!boards.has(root)) boards.set(root, new Board(root));
  const board = boards.get(root);
  board.tell = (answer) => component.setStateValue("answered", { ...answer, at: Date.now() });
  board.update({ data: component.data[0] });
  // Streamlit may clean up after an earlier call while the board lives on.
  return () => {
    const host = root.host ?? root;
    if (!host.isConnected) board.stop();
  };
}
