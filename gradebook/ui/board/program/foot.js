// Around the lines: what the picture says in words, the selected row's other
// cells, and the buttons.

import { buttons } from "./chips.js";
import { button, html, set } from "./dom.js";
import { copyLink, save, saveRows } from "./export.js";
import { cellField } from "./lines.js";
import { alike } from "./memo.js";
import { paste } from "./paste.js";

/** @import { Board } from "./board.js" */
/** @import { Lines } from "./lines.js" */
/** @import { Column, Edit } from "./types.js" */

const STATUS_SHOWN = 4000; // ms

export class Foot {
  /**
   * @param {Board} board
   * @param {Lines} lines
   */
  constructor(board, lines) {
    this.board = board;
    this.lines = lines;
    this.summary = html("p", { class: "summary", "aria-live": "polite" });
    this.status = html("span", { class: "status", role: "status" }); // what a button has done
    /** @type {number | undefined} */
    this.silence = undefined;
    this.notes = html("p", { class: "notes", role: "alert", hidden: true });
    this.regrouped = html("p", { class: "regrouped", role: "status", hidden: true });
    this.source = html("p", { class: "quiet source", hidden: true });
    this.panel = html("div", { class: "panel", role: "group" });
    this.words = html("p", { class: "row-words" });
    this.tools = html("div", { class: "tools", role: "toolbar", "aria-label": "Edit the batch" });
    this.block = paste(board);
    this.history = html("input", { type: "range", min: 0, "aria-label": "History of edits" });
    /** @type {Record<string, HTMLButtonElement>} */
    this.buttons = {};
    /** @type {unknown} */
    this.sizes = null; // the group sizes that are asked about
    /** @type {unknown} */
    this.drawn = null; // what the panel shows
    board.bar.append(this.tools);
    board.below.append(
      this.source,
      this.summary,
      this.notes,
      this.regrouped,
      this.panel,
      this.block,
    );
    this.tools.append(
      this.tool("Undo", "Ctrl+Z", () => board.put({ do: "undo" })),
      this.tool("Redo", "Ctrl+Shift+Z", () => board.put({ do: "redo" })),
      this.tool("Reset", "Back to the original batch", () => board.put({ do: "reset" })),
      this.menu(),
      this.status,
    );
    this.history.addEventListener("input", () =>
      board.put({ do: "go", at: Number(this.history.value), gesture: 0 }),
    );
    this.history.addEventListener("change", () => board.finish());
  }

  /**
   * @param {string} name
   * @param {string} title
   * @param {() => void} act
   */
  tool(name, title, act) {
    this.buttons[name] = button({ class: "tool", title, text: name }, act);
    return this.buttons[name];
  }

  /** "Rows and files". */
  menu() {
    const { board } = this;
    /** @param {Edit} edit */
    const put = (edit) => () => board.put({ ...edit, row: board.row });
    /** @param {number} by */
    const move = (by) => () => board.put({ do: "move", row: board.row, to: board.row + by });
    const pastes = () => {
      this.block.hidden = !this.block.hidden;
      if (!this.block.hidden) this.block.querySelector("textarea")?.focus();
    };
    const copy = async () => {
      const { copied, words } = await copyLink(board.data);
      this.say(words, !copied);
    };
    const more = html(
      "div",
      { class: "more" },
      this.tool("Add row", "A copy of the selected row, below it (Ctrl+D)", put({ do: "add" })),
      this.tool("Remove row", "Removes the selected row from the batch", put({ do: "remove" })),
      this.tool("Move row up", "Alt+\u2191", move(-1)),
      this.tool("Move row down", "Alt+\u2193", move(1)),
      this.tool("Paste rows", "Replace all rows by a block from a spreadsheet", pastes),
      this.tool("Save as SVG", "The picture as a file", () => save(board.data, "svg")),
      this.tool("Save as PNG", "The picture as a file", () => save(board.data, "png")),
      this.tool("Save rows as CSV", "A file that \u201cPaste rows\u201d takes", () =>
        saveRows(board.data),
      ),
      this.tool("Copy link", "A link to this batch", copy),
      html("label", { class: "past" }, "History", this.history),
    );
    const name = html("summary", { class: "tool", text: "Rows and files" });
    const menu = html("details", { class: "menu" }, name, more);
    more.addEventListener("click", ({ target }) => {
      if (target instanceof Element && target.matches("button")) menu.open = false;
    });
    document.addEventListener("pointerdown", (event) => {
      const path = event.composedPath();
      if (!path.includes(menu)) menu.open = false;
      if (!path.includes(this.status)) this.status.replaceChildren();
    });
    menu.addEventListener("keydown", ({ key }) => {
      if (key !== "Escape") return;
      menu.open = false;
      name.focus();
    });
    return menu;
  }

  /**
   * Says for a while what a button has done, or what can be done instead.
   * @param {string} words
   * @param {boolean} offers  the rows as a file
   */
  say(words, offers) {
    clearTimeout(this.silence);
    const save = () => saveRows(this.board.data);
    const file = button({ class: "tool", text: "Save rows as CSV" }, save);
    this.status.replaceChildren(words, ...(offers ? [file] : []));
    if (!offers) this.silence = setTimeout(() => this.status.replaceChildren(), STATUS_SHOWN);
  }

  render() {
    const { board } = this;
    const { data } = board;
    const words = data.stale
      ? `${data.stale} The grey marks show the last batch that could be computed.`
      : data.summary;
    set(this.summary, { text: words, class: data.stale ? "summary wrong" : "summary" });
    const notes = [...data.notes, data.overflow].filter(Boolean).join(" ");
    set(this.notes, { text: notes, hidden: !notes });
    this.asksForGroupSize(data.regrouped ?? null);
    const source = data.box?.otherBatch ? "" : data.source;
    set(this.source, { text: source, hidden: !source });
    this.selected();
    const [at, count] = data.history;
    const rows = data.rows.length;
    set(this.buttons.Undo, { disabled: at === 0 });
    set(this.buttons.Redo, { disabled: at === count - 1 });
    set(this.buttons.Reset, { disabled: !data.edited });
    set(this.buttons["Remove row"], { disabled: !rows });
    set(this.buttons["Move row up"], { disabled: board.row <= 0 });
    set(this.buttons["Move row down"], { disabled: board.row >= rows - 1 });
    set(this.history, { max: count - 1, disabled: count < 2, title: "0 is the original batch" });
    if (board.root.activeElement !== this.history || board.idle) this.history.value = String(at);
  }

  /**
   * Whether pasted rows come with their own group size.
   * @param {[number, number, string] | null} groups
   */
  asksForGroupSize(groups) {
    if (alike(this.sizes, groups)) return;
    this.sizes = groups;
    this.regrouped.hidden = !groups;
    if (!groups) return this.regrouped.replaceChildren();
    const [size, setting, words] = groups;
    const { board } = this;
    const use = () => board.put({ do: "setting", name: "group_size", value: String(size) });
    const keep = () => board.put({ do: "keep_group_size" });
    this.regrouped.replaceChildren(
      words,
      button({ class: "tool", text: `Use ${size}` }, use),
      button({ class: "tool", text: `Keep ${setting}` }, keep),
    );
  }

  /**
   * The selected row: its numbers in words, and the cells that have no
   * column of their own at this width.
   */
  selected() {
    const { board, panel } = this;
    const { data, layout, row } = board;
    const columns = layout.folded;
    const plain = !columns.length && !data.tokens;
    const hides = plain && (data.box || !layout.narrow);
    panel.hidden = Boolean(row >= data.rows.length || hides || data.fixed);
    if (panel.hidden) return;
    set(panel, { "aria-label": `Row ${row}` });
    const now = [row, columns, layout.narrow, board.bits(row)];
    if (!alike(this.drawn, now)) {
      const focus = board.root.activeElement;
      const label = focus && panel.contains(focus) ? focus.getAttribute("aria-label") : "";
      this.drawn = now;
      this.fill(row, columns);
      const same = label ? panel.querySelector(`[aria-label="${label}"]`) : null;
      if (same instanceof HTMLElement) same.focus();
    }
    const token = data.tokenNames?.[board.selected];
    const what = token === undefined ? `Row ${row}` : `Row ${row}, token ${token}`;
    set(this.words, { text: `${what}, ${this.lines.results(board.selected)}` });
    this.lines.fields(panel, row, this.lines.state(board.selected));
  }

  /**
   * @param {number} row
   * @param {Column[]} columns
   */
  fill(row, columns) {
    const { board } = this;
    /** @param {Column} column */
    const field = (column) =>
      html(
        "label",
        { class: column.kind, title: column.help || null },
        html("span", { text: column.title }),
        cellField(column, row),
      );
    /** @param {Column} column */
    const chips = ({ title }) =>
      html(
        "div",
        { class: "chip-place" },
        html("span", { "aria-hidden": "true", text: title }),
        buttons(board, row),
      );
    const masks = board.data.columns.filter((c) => c.kind === "tokens");
    const fields = columns.filter((c) => c.kind !== "tokens").map(field);
    this.panel.replaceChildren(this.words, ...fields, ...masks.map(chips));
  }
}
