// Where everything stands, in pixels, at a given width.

const NARROW = 640;
const BRACKET = 17; // pixels left of the rows' numbers for the brackets of pieces
const MANY = 8; // rows beyond which they are lower
const NUMBER = 94; // pixels of a result as a number, before and after the answer
const GAP = 10;
const CHIP = 15; // pixels of a mask chip with its gap, where there is room
const LEAST_CHIP = 6;
const AXES = 300; // pixels that the axes get before any optional column

// What a batch looks like at this width: the columns with their places, the
// axes' spans, what does not fit ("folded", shown for the selected row).
// `joined`: some rows are pieces of one rollout, and need room for brackets.
// `large`: the window is wide enough for higher rows.
export function layout(data, width, joined, large) {
  const narrow = width < NARROW;
  const first = (narrow ? 26 : 40) + (joined ? BRACKET : 0);
  const many = data.rows.length > MANY;
  const row = large ? (many ? 34 : 40) : presenting() ? 26 : many ? 28 : 34;
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
  const least = narrow ? width - fixed : AXES + 120 * (data.panels.length - 1);
  for (const column of optional) {
    if (rest() >= least) break;
    if (column.kind === "tokens" && !narrow) {
      const small = Math.max(data.tokens * LEAST_CHIP, 90) + 2 * GAP;
      const spare = wide.get(column.name) - (least - rest());
      if (spare >= small) {
        wide.set(column.name, spare);
        break;
      }
    }
    wide.delete(column.name);
    folded.unshift(column);
  }

  // From left to right: row, label, reward and its axis, the other columns,
  // the axes of the results, the numbers.
  const spans = [];
  let x = first;
  const put = (name, w, more = {}) => {
    spans.push({ name, left: x, width: w, ...more });
    x += w;
  };
  const [before, after] = [["prompt", "reward"], []];
  for (const c of columns) if (wide.has(c.name) && !before.includes(c.name)) after.push(c);
  const free = rest();
  const panels = data.panels.length;
  const share = plain ? 0 : panels > 1 ? 0.3 : 0.4;
  spans.push({ name: "row", left: 0, width: x });
  for (const name of before)
    put(name, wide.get(name), { column: columns.find((c) => c.name === name) });
  put("reward axis", Math.floor(free * share));
  for (const column of after) put(column.name, wide.get(column.name), { column });
  const each = Math.floor((free - Math.floor(free * share)) / panels);
  for (let i = 0; i < panels; i++) put(`panel ${i}`, each, { panel: i });
  if (numbers) {
    put("correct", numbers, { engine: 0 });
    if (engines > 1 && (data.box || !data.covered)) put("faulty", numbers, { engine: 1 });
  }
  return { width, narrow, plain, spans, folded, row, head: 46 };
}

// The address asks for the presenter view.
export const presenting = () => new URLSearchParams(location.search).get("present") === "1";

// The span of that name, or undefined.
export const span = (layout, name) => layout.spans.find((one) => one.name === name);

// Both ends of an axis, with room for half a mark.
export function ends(layout, name) {
  const { left, width } = span(layout, name);
  const room = layout.narrow ? 9 : 14;
  return [left + room, left + width - room];
}

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

function numberWidth(data) {
  const texts = data.panels[data.numbers].text.flat();
  const longest = Math.max(...[...texts, ...data.names].map((t) => t.length), 7);
  return Math.min(longest * 7.6 + 22, 130);
}
