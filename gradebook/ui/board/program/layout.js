// The place of everything, in pixels, at a given width.

/** @import { Column, Data } from "./types.js" */

const NARROW = 640;
const BRACKET = 17; // pixels left of the lines' numbers for the brackets of groups
const MANY = 8; // lines beyond which they are lower
const NUMBER = 94; // pixels of a result as a number, before and after the answer
const GAP = 10;
const CHIP = 15; // pixels of a mask chip with its gap, if there is room
const LEAST_CHIP = 6;
const AXES = 300; // pixels that the axes get before any optional column

/**
 * @typedef {object} Span  from left to right: a column, an axis, or a number
 * @property {string} name
 * @property {number} left
 * @property {number} width
 * @property {Column} [column]
 * @property {number} [panel]
 * @property {number} [engine]
 *
 * @typedef {object} Layout  what a batch looks like at a width
 * @property {number} width
 * @property {boolean} narrow
 * @property {boolean} plain  no left axis: what is dragged is a number alone
 * @property {boolean} compares  what the engines compare is drawn
 * @property {Span[]} spans
 * @property {Column[]} folded  columns that do not fit; the selected row shows them
 * @property {number} line  the height of a line
 * @property {number} head  that of the header
 */

/**
 * @param {Data} data
 * @param {number} width
 * @param {boolean} joined  some lines are joined, and need room for brackets
 * @param {boolean} large  the window is wide enough for higher lines
 * @returns {Layout}
 */
export function layout(data, width, joined, large) {
  if (data.lines) return tokenLayout(data, width, large);
  const narrow = width < NARROW;
  const first = (narrow ? 26 : 40) + (joined ? BRACKET : 0);
  const many = (data.lines ?? data.rows).length > MANY;
  const line = lineHeight(many, large);
  // On a phone a bug's page shows rewards as numbers alone.
  const plain = narrow && Boolean(data.box);
  const columns = data.columns.filter((c) => c.kind !== "list");
  const wide = new Map(columns.map((c) => [c.name, wanted(c, data, narrow)]));
  const folded = data.columns.filter((c) => c.kind === "list");
  const longest = Math.max(...data.names.map((name) => name.length));
  const numbers = narrow ? 0 : data.box ? Math.max(NUMBER, longest * 7 + 24) : numberWidth(data);
  const engines = data.names.filter(Boolean).length;
  const fixed = first + engines * numbers + GAP;
  const rest = () => width - fixed - [...wide.values()].reduce((sum, w) => sum + w, 0);

  // Optional columns leave from the last to the first until the axes fit.
  const optional = columns.filter((c) => c.name !== "prompt" && c.name !== "reward").reverse();
  const least = narrow && !data.fixed ? width - fixed : AXES + 120 * (data.panels.length - 1);
  for (const column of optional) {
    if (rest() >= least) break;
    if (column.kind === "tokens" && !narrow) {
      const small = Math.max(data.tokens * LEAST_CHIP, 90) + 2 * GAP;
      const spare = (wide.get(column.name) ?? 0) - (least - rest());
      if (spare >= small) {
        wide.set(column.name, spare);
        break;
      }
    }
    wide.delete(column.name);
    folded.unshift(column);
  }

  // Row, label, reward and its axis, the other columns, the axes of the results, the
  // numbers.
  /** @type {Span[]} */
  const spans = [];
  let x = first;
  /**
   * @param {string} name
   * @param {number} width
   * @param {Partial<Span>} more
   */
  const put = (name, width, more = {}) => {
    spans.push({ name, left: x, width, ...more });
    x += width;
  };
  const before = ["prompt", "reward"];
  const after = columns.filter((c) => wide.has(c.name) && !before.includes(c.name));
  const free = rest();
  const panels = data.panels.length;
  const share = plain ? 0 : panels > 1 ? 0.3 : 0.4;
  spans.push({ name: "row", left: 0, width: x });
  for (const name of before)
    put(name, wide.get(name) ?? 0, { column: columns.find((c) => c.name === name) });
  put("handle axis", Math.floor(free * share));
  for (const column of after) put(column.name, wide.get(column.name) ?? 0, { column });
  const each = Math.floor((free - Math.floor(free * share)) / panels);
  for (let i = 0; i < panels; i++) put(`panel ${i}`, each, { panel: i });
  if (numbers) {
    put("correct", numbers, { engine: 0 });
    if (engines > 1 && (data.box || !data.covered)) put("faulty", numbers, { engine: 1 });
  }
  return { width, narrow, plain, compares: !plain, spans, folded, line, head: 46 };
}

/**
 * @param {boolean} many
 * @param {boolean} large
 */
const lineHeight = (many, large) => (large ? (many ? 34 : 40) : presenting() ? 26 : many ? 28 : 34);

/**
 * If lines are tokens: row, label, reward, advantage, token, the dragged number and
 * its axis, the mask, the axis of the results, the numbers. The selected row shows the
 * other columns. On a phone a lane without numbers shows what the engines compare.
 * @param {Data} data
 * @param {number} width
 * @param {boolean} large
 * @returns {Layout}
 */
function tokenLayout(data, width, large) {
  const narrow = width < NARROW;
  const lane = narrow ? laneOf(data) : 0;
  const plain = narrow && (!lane || Boolean(data.causes.length));
  const lines = data.lines ?? [];
  const named = new Map(data.columns.map((c) => [c.name, c]));
  const dragged = named.get(data.handles.column);
  const prompts = new Set(data.rows.map((row) => row[data.columns.findIndex(isPrompt)]));
  const many = lines.length > MANY;
  const ranges = lines.some(([, first, last]) => first !== last);
  const name = Math.max(...data.names.map((text) => text.length));
  const [small, numbers] = narrow ? [38, 0] : [64, Math.max(NUMBER, name * 7 + 24)];
  /** @type {Span[]} */
  const spans = [];
  let x = narrow ? 4 : 12;
  /**
   * @param {string} name
   * @param {number} width
   * @param {Partial<Span>} more
   */
  const put = (name, width, more = {}) => {
    spans.push({ name, left: x, width, ...more });
    x += width;
  };
  const token = () => put("token", ranges ? (narrow ? 60 : 84) : narrow ? 42 : 58);
  if (data.byPosition) token();
  put("row", narrow ? 28 : 40);
  if (prompts.size > 1 && !narrow) put("prompt", 72, { column: named.get("prompt") });
  put("reward", narrow ? 50 : small + 8, { column: named.get("reward") });
  if (data.advantages && !narrow) put("advantage", 72);
  if (!data.byPosition) token();
  const isList = dragged?.kind === "list" && !data.lanes;
  if (isList && (!narrow || plain))
    put(dragged.name, narrow ? 56 : numberSize(data, dragged), { column: dragged });
  const chip = narrow ? 0 : 46;
  const free = width - x - chip - 2 * numbers - (narrow ? 4 : GAP);
  const returns = plain ? lane : data.causeAxis ? Math.floor(free * 0.16) : 0;
  const handles = plain ? 0 : narrow ? lane : Math.floor(free * 0.35) - returns / 2;
  const share = handles + returns;
  put("handle axis", handles);
  if (returns) put("cause axis", returns);
  if (chip && named.has("mask")) put("mask", chip, { column: named.get("mask") });
  put("panel 0", free - share, { panel: 0 });
  if (numbers) {
    put("correct", numbers, { engine: 0 });
    if (data.box || !data.covered) put("faulty", numbers, { engine: 1 });
  }
  const shown = new Set(spans.map((some) => some.name));
  const folded = data.columns.filter((c) => c.kind === "list" || !shown.has(c.name));
  const line = lineHeight(many, large);
  const compares = !plain || lane > 0;
  const rest = folded.filter(isNoPrompt);
  return { width, narrow, plain, compares, spans, folded: rest, line, head: 46 };
}

/**
 * The pixels of a dragged number, or of its title.
 * @param {Data} data
 * @param {Column} column
 */
const numberSize = ({ handles }, { title }) => {
  const longest = Math.max(...handles.values.map((value) => String(value ?? "").length));
  return Math.min(Math.max(longest * 8 + 18, title.length * 6.6 + 16, 64), 120);
};

/**
 * The pixels of a lane for what the engines compare: brackets, clip windows around
 * dots, or denominators.
 * @param {Data} data
 */
const laneOf = ({ causes, windows, lanes }) => (causes.length ? 38 : windows ? 76 : lanes ? 96 : 0);

/** @param {Column} column */
const isPrompt = ({ name }) => name === "prompt";
/** @param {Column} column */
const isNoPrompt = ({ name, kind }) => name !== "prompt" && kind !== "tokens";

/** The address asks for the presenter view. */
export const presenting = () => new URLSearchParams(location.search).get("present") === "1";

/**
 * @param {Layout} layout
 * @param {string} name
 */
export const span = ({ spans }, name) => spans.find((some) => some.name === name);

/**
 * Both ends of an axis, with room for half a mark.
 * @param {Layout} layout
 * @param {string} name
 * @returns {[number, number]}
 */
export function ends(layout, name) {
  const { left, width } = span(layout, name) ?? { left: 0, width: 0 };
  const room = layout.narrow ? 9 : 14;
  return [left + room, left + width - room];
}

/**
 * The pixels that a column wants.
 * @param {Column} column
 * @param {Data} data
 * @param {boolean} narrow
 */
function wanted(column, data, narrow) {
  if (column.kind === "tokens") return Math.max(data.tokens * CHIP, 90) + 2 * GAP;
  if (column.kind === "flag") return 56;
  const at = data.columns.indexOf(column);
  const texts = data.rows.slice(0, 200).map((row) => String(row[at]));
  const named = narrow ? 1 : column.title.length * 0.9 + 0.5;
  const longest = Math.max(...texts.map((t) => t.length), named);
  const letters = narrow ? 7 : 8;
  if (column.name === "reward") {
    const needed = longest * letters + 26;
    return Math.min(Math.max(needed, narrow ? 52 : 72), narrow ? 130 : 170);
  }
  if (column.kind === "label")
    return Math.min(Math.max(longest * letters + 20, narrow ? 42 : 58), narrow ? 56 : 120);
  return Math.min(Math.max(longest * letters + 18, 58), 110);
}

/** @param {Data} data */
function numberWidth(data) {
  const texts = data.panels[data.numbers].text.flat();
  const longest = Math.max(...[...texts, ...data.names].map((t) => t.length), 7);
  return Math.min(longest * 7.6 + 22, 130);
}
