// Below the rows: what the picture says in words, the selected row's other
// cells, and the buttons.

import { bitsOf, buttons } from "./chips.js";
import { button, html, set } from "./dom.js";
import { paste } from "./paste.js";
import { save } from "./export.js";
import { legend } from "./legend.js";
import { cellField, results } from "./rows.js";

export class Foot {
  constructor(board) {
    this.board = board;
    this.summary = html("p", { class: "summary", "aria-live": "polite" });
    this.notes = html("p", { class: "notes", role: "alert", hidden: true });
    this.panel = html("div", { class: "panel", role: "group" });
    this.tools = html("div", { class: "tools", role: "toolbar", "aria-label": "Edit the batch" });
    this.block = paste(board);
    board.bar.append(this.tools);
    board.below.append(this.summary, this.notes, this.panel, this.block);
    this.made = {};
    this.build();
  }

  build() {
    const { board } = this;
    const tool = (name, title, act) =>
      (this.made[name] = button({ class: "tool", title, text: name }, act));
    const put = (edit) => () => board.put({ ...edit, row: board.selected });
    const move = (by) => () =>
      board.put({ do: "move", row: board.selected, to: board.selected + by });
    const paste = () => {
      this.block.hidden = !this.block.hidden;
      if (!this.block.hidden) this.block.querySelector("textarea").focus();
    };
    const copy = () => navigator.clipboard?.writeText(location.href);
    this.history = html("input", { type: "range", min: 0, "aria-label": "History of edits" });
    this.history.addEventListener("input", () =>
      board.put({ do: "go", at: Number(this.history.value), gesture: 0 }),
    );
    this.history.addEventListener("change", () => board.outbox.finish());
    const more = html(
      "div",
      { class: "more" },
      tool("Add row", "A copy of the selected row, below it (Ctrl+D)", put({ do: "add" })),
      tool("Remove row", "Removes the selected row from the batch", put({ do: "remove" })),
      tool("Move row up", "Alt+\u2191", move(-1)),
      tool("Move row down", "Alt+\u2193", move(1)),
      tool("Paste rows", "Replace all rows by a block from a spreadsheet", paste),
      tool("Save as SVG", "The picture as a file", () => save(board, "svg")),
      tool("Save as PNG", "The picture as a file", () => save(board, "png")),
      tool("Copy link", "A link to this batch", copy),
      html("label", { class: "past" }, "History", this.history),
    );
    const name = html("summary", { class: "tool", text: "Rows and files" });
    this.menu = html("details", { class: "menu" }, name, more);
    more.addEventListener("click", ({ target }) => {
      if (target.matches("button")) this.menu.open = false;
    });
    document.addEventListener("pointerdown", (event) => {
      if (!event.composedPath().includes(this.menu)) this.menu.open = false;
    });
    this.menu.addEventListener("keydown", ({ key }) => {
      if (key !== "Escape") return;
      this.menu.open = false;
      name.focus();
    });
    this.tools.append(
      tool("Undo", "Ctrl+Z", put({ do: "undo" })),
      tool("Redo", "Ctrl+Shift+Z", put({ do: "redo" })),
      tool("Reset", "Back to the original batch", put({ do: "reset" })),
      this.menu,
    );
  }

  render() {
    const { board } = this;
    const { data } = board;
    legend(board);
    const said = data.stale
      ? `${data.stale} The grey marks show the last batch that could be computed.`
      : data.summary;
    set(this.summary, { text: said, class: data.stale ? "summary wrong" : "summary" });
    const notes = data.notes.join(" ");
    set(this.notes, { text: notes, hidden: !notes });
    this.selected();
    const [at, count] = data.history;
    const rows = data.rows.length;
    set(this.made.Undo, { disabled: at === 0 });
    set(this.made.Redo, { disabled: at === count - 1 });
    set(this.made.Reset, { disabled: !data.edited });
    set(this.made["Remove row"], { disabled: !rows });
    set(this.made["Move row up"], { disabled: board.selected <= 0 });
    set(this.made["Move row down"], { disabled: board.selected >= rows - 1 });
    set(this.history, { max: count - 1, disabled: count < 2, title: "0 is the original batch" });
    if (board.root.activeElement !== this.history || !board.outbox.waiting.length)
      this.history.value = at;
  }

  // The selected row: its numbers in words, and the cells that have no
  // column of their own at this width.
  selected() {
    const { board, panel } = this;
    const { data, layout, selected } = board;
    const row = selected;
    const columns = layout.folded;
    const plain = !columns.length && !data.tokens;
    panel.hidden = row >= data.rows.length || (plain && (data.box || !layout.narrow));
    if (panel.hidden) return;
    set(panel, { "aria-label": `Row ${row}` });
    const key = JSON.stringify([row, columns, layout.narrow, bitsOf(board, row)]);
    if (panel.key !== key) {
      const focus = board.root.activeElement;
      const label = panel.contains(focus) && focus.getAttribute("aria-label");
      panel.key = key;
      this.fill(row, columns);
      if (label) panel.querySelector(`[aria-label="${label}"]`)?.focus();
    }
    set(this.words, { text: `Row ${row}, ${results(board, row)}` });
    board.rows.fields(panel, row, board.rows.state(row));
  }

  fill(row, columns) {
    const { board } = this;
    const field = (column) =>
      html(
        "label",
        { class: column.kind, title: column.help || null },
        html("span", { text: column.title }),
        cellField(column, row),
      );
    const masks = board.data.columns.filter((c) => c.kind === "tokens");
    const chips = ({ title }) =>
      html(
        "div",
        { class: "chip-place" },
        html("span", { "aria-hidden": "true", text: title }),
        buttons(board, row),
      );
    this.words = html("p", { class: "row-words" });
    const fields = columns.filter((c) => c.kind !== "tokens").map(field);
    this.panel.replaceChildren(this.words, ...fields, ...masks.map(chips));
  }
}
