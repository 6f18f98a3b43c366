// The batch's lines: numbers, text cells, flags, chips and handles.

import { button, html, set, within } from "./dom.js";
import { Chips } from "./chips.js";
import { alike } from "./memo.js";
import { minus, parsed, short } from "./scale.js";
import { span } from "./layout.js";

/** @import { Board } from "./board.js" */
/** @import { Layout, Span } from "./layout.js" */
/** @import { Cell, Column } from "./types.js" */

/** @type {Record<string, string>} */
const KINDS = { row: "index", "handle axis": "handle-axis" };
const PAUSE = 500; // ms without a key after which the rest of the page follows

/**
 * @typedef {object} State  what decides how a line looks, its handle aside
 * @property {Cell[]} cells
 * @property {boolean} selected
 * @property {([string, string] | null)[]} refused
 * @property {number} band
 * @property {string} piece
 * @property {boolean} open
 * @property {string[]} texts
 * @property {string[]} say
 * @property {boolean} flip
 * @property {number} count
 * @property {boolean} asked
 * @property {string} token
 * @property {string} advantage
 * @property {boolean} masked
 * @property {string} number  the handle's value, as text
 * @property {boolean} named  the row's number is shown
 */

/** One line's elements. */
class Line {
  /** @param {number} number */
  constructor(number) {
    this.element = html("div", { role: "row", class: "row", "data-line": number });
    /** @type {State | null} */
    this.state = null;
    /** @type {Layout | null} */
    this.layout = null;
    this.names = "";
    this.at = NaN; // of the handle
    /** @type {Chips | null} */
    this.chips = null;
  }

  /** @param {string} selector */
  find(selector) {
    return /** @type {HTMLElement | null} */ (this.element.querySelector(selector));
  }
}

export class Lines {
  /** @param {Board} board */
  constructor(board) {
    this.board = board;
    /** @type {Map<number, Line>} */
    this.all = new Map();
    /** @type {{input: HTMLInputElement, gesture: number} | null} */
    this.cell = null; // the cell being typed in
    /** @type {number | undefined} */
    this.pause = undefined;
    /** @type {WeakMap<HTMLInputElement, string>} */
    this.came = new WeakMap(); // a cell's text when it got the focus
    const { whole } = board;
    whole.addEventListener("input", ({ target }) => {
      if (target instanceof HTMLInputElement) this.typed(target);
    });
    whole.addEventListener("change", ({ target }) => {
      if (target instanceof HTMLInputElement && target.matches("[type=checkbox]"))
        this.send(target);
    });
    whole.addEventListener("focusin", ({ target }) => {
      if (target instanceof HTMLElement) this.entered(target);
    });
    whole.addEventListener("focusout", ({ target }) => {
      if (target instanceof HTMLInputElement) this.left(target);
    });
    board.list.addEventListener("pointerdown", (event) => {
      const line = within(event, ".row");
      if (line) board.select(Number(line.dataset.line));
    });
  }

  /** Somebody is typing in a cell. */
  get typing() {
    return this.cell !== null;
  }

  render() {
    const { board } = this;
    const [first, last] = board.shown;
    for (const [number, line] of this.all)
      if (number < first || number >= last) {
        line.element.remove();
        this.all.delete(number);
      }
    /** @type {Element | null} */
    let after = null;
    for (let number = last - 1; number >= first; number--) {
      /** @type {Line} */
      const line = this.all.get(number) ?? this.make(number, after);
      this.draw(line, number);
      after = line.element;
    }
    set(board.table, { "aria-rowcount": board.lines.length + 1 });
  }

  /**
   * @param {number} number
   * @param {Element | null} after
   */
  make(number, after) {
    const line = new Line(number);
    this.all.set(number, line);
    this.board.list.insertBefore(line.element, after);
    return line;
  }

  /**
   * Shows a value that a hand or a key gives the handle, before the server has it.
   * @param {number} number
   * @param {number} value
   */
  follow(number, value) {
    const line = this.all.get(number);
    if (!line) return;
    const { column } = this.board.data.handles;
    const input = /** @type {HTMLInputElement | null} */ (line.find(`[data-column=${column}]`));
    if (input && parsed(input.value) !== value) input.value = minus(short(value));
    this.draw(line, number);
  }

  /**
   * The element of a line, if it is drawn.
   * @param {number} number
   */
  element(number) {
    return this.all.get(number)?.element;
  }

  /**
   * Gives the focus to a part of a line, if it is drawn.
   * @param {number} number
   * @param {string} selector
   */
  focus(number, selector) {
    this.all.get(number)?.find(selector)?.focus();
    return this.all.has(number);
  }

  /**
   * Draws the line, unless nothing of it has changed.
   * @param {Line} line
   * @param {number} number
   */
  draw(line, number) {
    const state = this.state(number);
    const { layout } = this.board;
    if (line.layout !== layout) this.place(line, number);
    if (!alike(line.state, state) || line.layout !== layout) this.fill(line, number, state);
    line.layout = layout;
    line.state = state;
    const handle = line.find(".handle");
    if (handle) this.handle(line, handle, number, state);
  }

  /**
   * @param {number} number
   * @returns {State}
   */
  state(number) {
    const { board } = this;
    const { data } = board;
    const { row, head } = board.lines[number];
    const value = board.value(number);
    const cells = data.columns.map((column, i) => {
      if (column.kind === "tokens") return board.bits(row);
      // Lists of numbers come for the selected row alone.
      const list = row === data.row ? (data.lists[column.name] ?? "") : "";
      const cell = column.kind === "list" ? list : data.rows[row][i];
      return board.pending(row, column.name) ?? cell;
    });
    return {
      cells,
      selected: number === board.selected,
      refused: data.columns.map((c) => data.refused[this.address(number, c)] ?? null),
      band: board.bands[number],
      piece: board.pieces[number],
      open: board.isOpen(row),
      texts: this.texts(number),
      say: data.causes.map((cause) => cause.say[number]),
      flip: data.panels.some((panel) => panel.flips.includes(number)),
      count: board.lines.length,
      asked: number === board.lineInQuestion,
      token: data.tokenNames?.[number] ?? "",
      advantage: (head && data.advantages?.[row]) || "",
      masked: data.masked?.[number] === "1",
      number: value === null ? "" : short(board.layout.narrow ? thousandths(value) : value),
      named: !data.lines || head || number === board.selected || number === board.lineInQuestion,
    };
  }

  /**
   * Where the server keeps text that it refused.
   * @param {number} number
   * @param {Column} column
   */
  address(number, column) {
    const { row, first, last } = this.board.lines[number];
    if (first === null || column.kind !== "list") return `${row} ${column.name}`;
    return `${row} ${first} ${(last ?? first) + 1} ${column.name}`;
  }

  /**
   * Both engines' numbers; of the covered one a question mark if it is asked.
   * @param {number} number
   */
  texts(number) {
    const { data, lineInQuestion } = this.board;
    const texts = data.panels[data.numbers].text.map((side) => side?.[number] ?? "");
    if (data.covered && data.box) texts.push(number === lineInQuestion ? "?" : "");
    return texts;
  }

  /**
   * Puts the cells where they belong. They are made anew only where others
   * are shown than before, so that a cell keeps its focus.
   * @param {Line} line
   * @param {number} number
   */
  place(line, number) {
    const { layout } = this.board;
    const { element } = line;
    const spans = layout.spans.filter((some) => some.panel === undefined);
    const names = spans.map((some) => some.name).join();
    if (line.names !== names)
      element.replaceChildren(...spans.map((some) => this.cellOf(some, line, number)));
    spans.forEach((some, i) => {
      const cell = /** @type {HTMLElement} */ (element.children[i]);
      cell.style.left = `${some.left}px`;
      cell.style.width = `${some.width}px`;
    });
    element.style.top = `${number * layout.line}px`;
    element.style.height = `${layout.line}px`;
    line.names = names;
  }

  /**
   * @param {Span} span
   * @param {Line} line
   * @param {number} number
   */
  cellOf(span, line, number) {
    const look = {
      role: span.name === "row" ? "rowheader" : "cell",
      class: `cell ${span.column?.kind ?? KINDS[span.name] ?? span.name}`,
      "data-name": span.column?.name,
    };
    return html("div", look, this.content(span, line, number));
  }

  /**
   * @param {Span} span
   * @param {Line} line
   * @param {number} number
   */
  content({ name, column, engine }, line, number) {
    const { row, head, first } = this.board.lines[number];
    if (name === "row") return button({ class: "grip", tabindex: -1 }, () => {});
    if (name === "handle axis")
      return html("div", {
        class: "handle",
        role: "slider",
        "data-row": row,
        "data-line": number,
      });
    if (engine !== undefined) return html("span", { class: "result" });
    if (!column) return html("span", { class: `of-${name}` });
    if (column.kind === "tokens") {
      line.chips = new Chips(row, number);
      return line.chips.element;
    }
    if (column.kind === "list") return tokenField(column, row, first ?? 0, number);
    return head ? cellField(column, row, number) : html("span");
  }

  /**
   * @param {Line} line
   * @param {number} number
   * @param {State} state
   */
  fill(line, number, state) {
    const { data, lines, layout } = this.board;
    const { row } = lines[number];
    set(line.element, {
      "data-row": row,
      class: [
        "row",
        state.asked && "asked",
        state.band % 2 && "band",
        state.piece && `piece ${state.piece}`,
        state.selected && "selected",
        state.flip && "flips",
        state.masked && "masked",
      ],
      "aria-rowindex": number + 2,
    });
    const grip = line.find(".grip");
    if (grip)
      set(grip, {
        text: state.named ? String(row) : "",
        "aria-label": state.token ? `row ${row}, token ${state.token}` : `row ${row}`,
        title: state.piece ? "A piece of a rollout" : null,
        "aria-current": state.selected ? "true" : null,
      });
    this.fields(line.element, row, state);
    const mask = data.columns.findIndex((c) => c.kind === "tokens");
    const place = layout.spans.find((some) => some.column?.kind === "tokens");
    const bits = String(state.cells[mask]);
    const chip = data.lines ? (state.masked ? "0" : "1") : bits;
    if (place) line.chips?.draw(chip, place.width, layout.line);
    const [token, advantage] = [line.find(".of-token"), line.find(".of-advantage")];
    if (token) set(token, { text: state.token });
    if (advantage) set(advantage, { text: state.advantage });
    line.element.querySelectorAll(".result").forEach((result, engine) => {
      set(result, { text: state.texts[engine] });
    });
  }

  /**
   * The fields of a line, in it or below the board.
   * @param {Element} within
   * @param {number} row
   * @param {State} state
   */
  fields(within, row, state) {
    for (const input of within.querySelectorAll("input")) this.field(input, row, state);
  }

  /**
   * @param {HTMLInputElement} input
   * @param {number} row
   * @param {State} state
   */
  field(input, row, state) {
    const { data, root } = this.board;
    const i = data.columns.findIndex((c) => c.name === input.dataset.column);
    if (i < 0) return;
    const column = data.columns[i];
    // Text that the server refused stays in its field, beside the value that holds.
    const [value, why] = state.refused[i] ?? [state.cells[i], null];
    const locked = data.locked.includes(column.name) || !state.open || Boolean(data.fixed);
    const busy = root.activeElement === input && this.types(input);
    if (column.kind === "flag" && typeof value === "boolean") {
      set(input, { type: "checkbox" });
      input.checked = value;
    } else if (!busy) {
      set(input, { type: "text" });
      const typed = input.dataset.token !== undefined && !why ? state.number : String(value);
      const text = column.kind === "label" ? typed : minus(typed);
      if (input.value !== text) input.value = text;
    }
    set(input, {
      "aria-invalid": why ? "true" : null,
      title: why,
      disabled: locked,
      tabindex: state.selected || column.name === data.handles.column ? 0 : -1,
    });
  }

  /**
   * @param {Line} line
   * @param {HTMLElement} handle
   * @param {number} number
   * @param {State} state
   */
  handle(line, handle, number, state) {
    const { board } = this;
    const { data, handleAxis: axis, layout } = board;
    const { row, first } = board.lines[number];
    const value = board.value(number);
    handle.hidden = value === null && Boolean(data.lines);
    const refused = state.refused[data.columns.findIndex((c) => c.name === data.handles.column)];
    const at = axis.at(value ?? 0) - (span(layout, "handle axis")?.left ?? 0);
    if (line.at !== at) handle.style.transform = `translateX(${at}px)`;
    line.at = at;
    const [low, high] = axis.ends;
    const fixed = board.isFixed(number);
    const reachable = state.open && (data.fixed ? !fixed : state.selected || !number);
    set(handle, {
      class: [
        "handle",
        state.say[0] === "0" && "hollow",
        state.say.length > 1 && state.say[0] !== state.say[1] && "unlike",
        refused && "bad",
        fixed && "fixed",
        board.holds(number) && "held",
      ],
      tabindex: reachable ? 0 : -1,
      "aria-label":
        first === null
          ? `${capital(data.handles.title)} of row ${row}, prompt ${this.prompt(state)}`
          : `${capital(data.handles.title)} of row ${row}, token ${state.token}`,
      "aria-valuemin": low,
      "aria-valuemax": high,
      "aria-valuenow": value ?? 0,
      "aria-valuetext": this.words(number, value),
    });
  }

  /** @param {State} state */
  prompt({ cells }) {
    return cells[this.board.data.columns.findIndex((c) => c.name === "prompt")];
  }

  /**
   * The line in words, for who does not see it.
   * @param {number} number
   * @param {number | null} value
   */
  words(number, value) {
    return `${value === null ? "no number" : minus(short(value))}; ${this.results(number)}`;
  }

  /**
   * A line's numbers in words; while covered on every axis, since one would be the answer.
   * @param {number} number
   */
  results(number) {
    const { data } = this.board;
    const panels = data.covered ? data.panels : [data.panels[data.numbers]];
    const words = panels.map(({ title, text, flips }) => {
      const before = data.stale ? " before" : "";
      const numbers = text.map((side, e) => side?.[number] && `${data.names[e]} ${side[number]}`);
      const flip = flips.includes(number) ? "; its sign flips" : "";
      return `${title}${before}: ${numbers.filter(Boolean).join(", ")}${flip}`;
    });
    return words.join("; ");
  }

  /** @param {HTMLElement} target */
  entered(target) {
    if (target.dataset.line !== undefined) this.board.select(Number(target.dataset.line));
    if (target instanceof HTMLInputElement && target.matches("[type=text]")) {
      this.came.set(target, target.value);
      target.select();
    }
  }

  /**
   * Brings back a cell's text from when it got the focus; false if it was no cell.
   * @param {HTMLInputElement} input
   */
  restore(input) {
    const refused = input.getAttribute("aria-invalid") === "true";
    const before = refused ? this.holding(input) : this.came.get(input);
    if (before === undefined) return false;
    if (input.value !== before) {
      input.value = before;
      this.typed(input);
      this.left(input);
    }
    input.select();
    return true;
  }

  /**
   * The text of what holds, if the server refused what is in the field.
   * @param {HTMLInputElement} input
   */
  holding(input) {
    const { data, lines } = this.board;
    const { column, row, token, line } = input.dataset;
    const i = data.columns.findIndex((c) => c.name === column);
    if (i < 0) return undefined;
    if (token === undefined) return minus(String(data.rows[Number(row)][i]));
    const value = lines[Number(line)] && data.handles.values[Number(line)];
    return typeof value === "number" ? minus(short(value)) : undefined;
  }

  /** @param {HTMLInputElement} input */
  typed(input) {
    if (!input.matches("[type=text][data-column]")) return;
    if (this.cell?.input !== input) this.cell = { input, gesture: this.board.newGesture() };
    this.send(input);
    clearTimeout(this.pause);
    this.pause = setTimeout(() => this.board.pauses(), PAUSE);
  }

  /**
   * Somebody is typing there: the field's text is newer than the data.
   * @param {HTMLInputElement} input
   */
  types(input) {
    return this.cell?.input === input;
  }

  /** @param {HTMLInputElement} input */
  send(input) {
    const { row, column } = input.dataset;
    const kind = this.board.data.columns.find((c) => c.name === column)?.kind;
    if (!kind) return;
    const text = kind === "label" ? input.value : input.value.replaceAll("\u2212", "-");
    const value = input.type === "checkbox" ? input.checked : text;
    const gesture = this.cell?.input === input ? this.cell.gesture : undefined;
    const { token, line } = input.dataset;
    const place =
      token === undefined
        ? { do: "cell", row: Number(row), column }
        : this.board.place(Number(line), String(column));
    this.board.put({ ...place, value, gesture });
    this.board.soon();
  }

  /**
   * Typing in the cell has ended: one edit, and one step of undo.
   * @param {HTMLInputElement} input
   */
  left(input) {
    if (this.cell?.input !== input) return;
    clearTimeout(this.pause);
    this.cell = null;
    this.board.finish();
  }
}

/**
 * A number as a phone has room for it.
 * @param {number} x
 */
const thousandths = (x) => Number(x.toFixed(3));

/** @param {string} text */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/**
 * The field of a cell.
 * @param {Column} column
 * @param {number} row
 * @param {number} [line]
 */
export const cellField = (column, row, line) =>
  html("input", {
    type: column.kind === "flag" ? "checkbox" : "text",
    "data-column": column.name,
    "data-row": row,
    "data-line": line,
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": `${column.title} of row ${row}`,
  });

/**
 * The field of a number of tokens.
 * @param {Column} column
 * @param {number} row
 * @param {number} token
 * @param {number} line
 */
const tokenField = (column, row, token, line) =>
  set(cellField(column, row, line), {
    "data-token": token,
    "aria-label": `${column.title} of row ${row}, token ${token}`,
  });
