// Pasting: a block from a spreadsheet at the cell that has the focus, or,
// in a form of its own, in place of all rows.

import { button, html } from "./dom.js";

/** @import { Board } from "./board.js" */

/** @param {Board} board */
export function paste(board) {
  board.list.addEventListener("paste", (event) => {
    if (!(event.target instanceof HTMLElement)) return;
    const { row, column } = event.target.dataset;
    const text = event.clipboardData?.getData("text/plain").replace(/\r/g, "") ?? "";
    const block = text.replace(/\n$/, "");
    if (column === undefined || !/[\t\n]/.test(block)) return;
    event.preventDefault();
    board.put({ do: "paste", row: Number(row), column, text: block });
  });
  const field = html("textarea", { rows: 6, "aria-label": "Block of cells" });
  const text =
    "Copy cells from a spreadsheet and paste them here, with or without a line of column names;" +
    " a single column is the rewards. The block replaces all rows. To change some cells only," +
    " paste into a cell of the board.";
  const go = button({ class: "tool", text: "Replace the rows" }, () =>
    board.put({ do: "replace", text: field.value.replace(/\r/g, "") }),
  );
  return html("div", { class: "block", hidden: true }, html("p", { text }), field, go);
}
