// The batch's rows: numbers, text cells, flags, chips and handles.

import { button, html, set } from "./dom.js";
import { chips } from "./chips.js";
import { minus, parsed, short } from "./scale.js";
import { span } from "./layout.js";

const KINDS = { row: "index", "reward axis": "reward-axis" };
const PAUSE = 500; // ms without a key after which typing counts as done

export class Rows {
  constructor(board) {
    this.board = board;
    this.all = new Map(); // row -> its element
    this.typing = null; // {row, column, gesture}: the cell being typed in
    const { whole } = board;
    whole.addEventListener("input", (event) => this.typed(event.target));
    whole.addEventListener("change", ({ target }) => {
      if (target.matches("input[type=checkbox]")) this.send(target);
    });
    whole.addEventListener("focusin", (event) => this.entered(event));
    whole.addEventListener("focusout", (event) => this.left(event.target));
    board.list.addEventListener("pointerdown", (event) => {
      const row = event.target.closest?.(".row");
      if (row) board.select(Number(row.dataset.row));
    });
  }

  render() {
    const { board } = this;
    const [first, last] = board.shown;
    this.places = JSON.stringify(board.layout);
    for (const [row, made] of this.all)
      if (row < first || row >= last) {
        made.remove();
        this.all.delete(row);
      }
    let after = null;
    for (let row = last - 1; row >= first; row--) {
      const made = this.all.get(row) ?? this.make(row, after);
      this.draw(made, row);
      after = made;
    }
    set(board.table, { "aria-rowcount": board.data.rows.length + 1 });
  }

  make(row, after) {
    const made = html("div", { role: "row", class: "row", "data-row": row });
    this.all.set(row, made);
    this.board.list.insertBefore(made, after);
    return made;
  }

  // Draws one row, whose handle follows a hand or a key.
  redraw(row) {
    const made = this.all.get(row);
    if (made) this.draw(made, row);
  }

  // Draws the row, unless nothing of it has changed.
  draw(made, row) {
    const state = this.state(row);
    const said = JSON.stringify(state) + this.places;
    if (made.said !== said) {
      made.said = said;
      if (made.places !== this.places) this.place(made, row);
      this.fill(made, row, state);
    }
    this.handle(made.querySelector(".handle"), row, state);
  }

  // Everything that decides what the row looks like, its handle aside.
  state(row) {
    const { data, selected, outbox, bands } = this.board;
    const cells = data.columns.map((column, i) => {
      // Lists of numbers come for the selected row alone.
      const known =
        column.kind !== "list"
          ? data.rows[row][i]
          : row === selected
            ? (data.lists[column.name] ?? "")
            : "";
      const value = outbox.pending(row, column.name) ?? known;
      return column.kind === "tokens" ? outbox.mask(row, value) : value;
    });
    return {
      cells,
      selected: row === selected,
      bad: data.columns.map((c) => data.refused[`${row} ${c.name}`] ?? null),
      band: bands[row],
      piece: this.board.pieces[row],
      open: this.open(row),
      texts: this.texts(row),
      say: data.causes.map((cause) => cause.say[row]),
      flip: data.panels.some((panel) => panel.flips.includes(row)),
      count: data.rows.length,
    };
  }

  // Both engines' numbers; of the covered one a question mark where it is asked.
  texts(row) {
    const { data } = this.board;
    const texts = data.panels[data.numbers].text.map((some) => some?.[row] ?? "");
    if (data.covered && data.box) texts.push(data.box.row === row ? "?" : "");
    return texts;
  }

  // The row can be edited: in a long list only the selected one.
  open(row) {
    return !this.board.long || row === this.board.selected;
  }

  // Puts the cells where they belong. They are made anew only where others
  // are shown than before, so that a cell keeps its focus.
  place(made, row) {
    const { layout } = this.board;
    const spans = layout.spans.filter((one) => one.panel === undefined);
    const names = spans.map((one) => one.name).join();
    if (made.names !== names) made.replaceChildren(...spans.map((one) => this.cell(one, row)));
    spans.forEach((one, i) => {
      made.children[i].style.left = `${one.left}px`;
      made.children[i].style.width = `${one.width}px`;
    });
    made.style.top = `${row * layout.row}px`;
    made.style.height = `${layout.row}px`;
    made.names = names;
    made.places = this.places;
  }

  cell(one, row) {
    const look = {
      role: one.name === "row" ? "rowheader" : "cell",
      class: `cell ${one.column?.kind ?? KINDS[one.name] ?? one.name}`,
      "data-name": one.column?.name,
    };
    return html("div", look, this.content(one, row));
  }

  content({ name, column, engine }, row) {
    if (name === "row") return button({ class: "grip", tabindex: -1 }, () => {});
    if (name === "reward axis")
      return html("div", { class: "handle", role: "slider", "data-row": row });
    if (engine !== undefined) return html("span", { class: "result" });
    return column.kind === "tokens" ? chips(this.board, row) : cellField(column, row);
  }

  fill(made, row, state) {
    const { board } = this;
    const { data } = board;
    set(made, {
      class: [
        "row",
        board.data.box?.row === row && "asked",
        state.band % 2 && "band",
        state.piece && `piece ${state.piece}`,
        state.selected && "selected",
        state.flip && "flips",
      ],
      "aria-rowindex": row + 2,
    });
    const grip = made.querySelector(".grip");
    set(grip, {
      text: String(row),
      "aria-label": `row ${row}`,
      title: state.piece ? "A piece of a rollout" : null,
      "aria-current": state.selected ? "true" : null,
    });
    this.fields(made, row, state);
    const mask = made.querySelector(".mask");
    if (mask) {
      const i = data.columns.findIndex((c) => c.kind === "tokens");
      mask.draw(state.cells[i]);
    }
    made.querySelectorAll(".result").forEach((result, engine) => {
      set(result, { text: state.texts[engine] });
    });
  }

  // The row's cells that are fields, in the row or below the board.
  fields(made, row, state) {
    for (const input of made.querySelectorAll("input")) this.field(input, row, state);
  }

  field(input, row, state) {
    const { data, root } = this.board;
    const i = data.columns.findIndex((c) => c.name === input.dataset.column);
    const column = data.columns[i];
    // What the server refused stands in its field beside the value that holds.
    const [value, bad] = state.bad[i] ?? [state.cells[i], null];
    const locked = data.locked.includes(column.name) || !state.open;
    const busy = root.activeElement === input && this.types(input);
    if (column.kind === "flag" && typeof value === "boolean") {
      set(input, { type: "checkbox" });
      input.checked = value;
    } else if (!busy) {
      set(input, { type: "text" });
      const text = column.kind === "label" ? String(value) : minus(String(value));
      if (input.value !== text) input.value = text;
    }
    set(input, {
      "aria-invalid": bad ? "true" : null,
      title: bad,
      disabled: locked,
      tabindex: state.selected || column.name === "reward" ? 0 : -1,
    });
  }

  handle(made, row, state) {
    const { board } = this;
    const { data, reward: axis } = board;
    const value = board.value(row);
    const bad = state.bad[data.columns.findIndex((c) => c.name === "reward")];
    const left = span(board.layout, "reward axis").left;
    const at = axis.at(value ?? 0) - left;
    if (made.at !== at) made.style.transform = `translateX(${at}px)`;
    made.at = at;
    const [low, high] = axis.ends;
    const prompt = state.cells[data.columns.findIndex((c) => c.name === "prompt")];
    set(made, {
      class: [
        "handle",
        state.say[0] === "0" && "hollow",
        state.say.length > 1 && state.say[0] !== state.say[1] && "unlike",
        bad && "bad",
        board.held?.row === row && "held",
      ],
      tabindex: state.open && (state.selected || !row) ? 0 : -1,
      "aria-label": `Reward of row ${row}, prompt ${prompt}`,
      "aria-valuemin": low,
      "aria-valuemax": high,
      "aria-valuenow": value ?? 0,
      "aria-valuetext": words(board, row, value),
    });
  }

  // A reward that is on its way, as a number.
  pendingReward(row) {
    const typed = this.board.outbox.pending(row, "reward");
    return typed === undefined ? undefined : (parsed(String(typed)) ?? undefined);
  }

  entered({ target }) {
    if (target.dataset?.row !== undefined) this.board.select(Number(target.dataset.row));
    if (target.matches("input[type=text]")) {
      target.before = target.value;
      target.select();
    }
  }

  typed(input) {
    if (!input.matches("input[type=text][data-column]")) return;
    if (this.typing?.input !== input || !this.typing.open) {
      const gesture = this.board.outbox.newGesture();
      this.typing = { input, gesture, open: true };
    }
    this.send(input);
    clearTimeout(this.pause);
    this.pause = setTimeout(() => this.done(input), PAUSE);
  }

  // Somebody is typing there: what stands in it is newer than the data.
  types(input) {
    return this.typing?.input === input && this.typing.open;
  }

  send(input) {
    const { row, column } = input.dataset;
    const { kind } = this.board.data.columns.find((c) => c.name === column);
    const text = kind === "label" ? input.value : input.value.replaceAll("\u2212", "-");
    const value = input.type === "checkbox" ? input.checked : text;
    const gesture = this.typing?.input === input ? this.typing.gesture : undefined;
    this.board.put({ do: "cell", row: Number(row), column, value, gesture });
    this.board.soon();
  }

  // Typing paused or ended: one step of undo ends here.
  done(input) {
    clearTimeout(this.pause);
    if (this.typing?.input !== input || !this.typing.open) return;
    this.typing.open = false;
    this.board.outbox.finish();
  }

  left(input) {
    if (this.typing?.input !== input) return;
    this.done(input);
    this.typing = null;
  }
}

// The field of a cell.
export const cellField = (column, row) =>
  html("input", {
    type: column.kind === "flag" ? "checkbox" : "text",
    "data-column": column.name,
    "data-row": row,
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": `${column.title} of row ${row}`,
  });

// The row in words, for who does not see it.
function words(board, row, value) {
  return `${value === null ? "no number" : minus(short(value))}; ${results(board, row)}`;
}

// A row's numbers in words; while covered on every axis, since one would be the answer.
export function results({ data }, row) {
  const panels = data.covered ? data.panels : [data.panels[data.numbers]];
  const number = (texts, e) => texts?.[row] && `${data.names[e]} ${texts[row]}`;
  const words = ({ title, text, flips }) =>
    `${title}${data.stale ? " before" : ""}: ${text.map(number).filter(Boolean).join(", ")}` +
    (flips.includes(row) ? "; its sign flips" : "");
  return panels.map(words).join("; ");
}
