// The picture as a file: SVG or PNG, with title, case and link in it.

import { items } from "./legend.js";
import { padding } from "./layout.js";
import { minus } from "./scale.js";
import { svg } from "./dom.js";

const TOP = 64;
const SIDE = 16;
const FONT = "Source Sans, Source Sans Pro, system-ui, sans-serif";

export async function save(board, kind) {
  const text = new XMLSerializer().serializeToString(picture(board));
  const drawn = new Blob([text], { type: "image/svg+xml" });
  const file = kind === "svg" ? drawn : await raster(drawn, board);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = `${board.data.name}.${kind}`;
  link.click();
  URL.revokeObjectURL(link.href);
}

// A drawing of its own with all rows, which needs no style sheet.
export function picture(board) {
  const { data, layout } = board;
  const style = getComputedStyle(board.whole);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const ink = style.color;
  const height = TOP + layout.head + data.rows.length * layout.row + 70;
  const width = layout.width + 2 * SIDE;
  const made = svg("svg", {
    xmlns: "http://www.w3.org/2000/svg",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    "font-family": FONT,
    "font-size": 14,
    fill: ink,
  });
  const text = (x, y, words, more = {}) => made.append(svg("text", { x, y, text: words, ...more }));
  made.append(svg("rect", { width, height, fill: colour("paper") }));
  text(SIDE, 28, data.title, { "font-size": 20, "font-weight": 600 });
  text(
    SIDE,
    50,
    items(board)
      .map(([, words]) => words)
      .join("  \u00b7  "),
    { "font-size": 12 },
  );

  const moved = svg("g", { transform: `translate(${SIDE} ${TOP})` });
  made.append(moved);
  const put = (x, y, words, anchor) =>
    moved.append(svg("text", { x, y, text: words, "text-anchor": anchor }));
  for (const one of layout.spans) {
    const right = one.engine !== undefined || one.name === "reward";
    const axis = one.name === "reward axis" ? board.reward : board.panels[one.panel];
    const panel = one.panel !== undefined && data.panels[one.panel].title;
    const title =
      panel ||
      (axis
        ? "reward"
        : (one.column?.title ?? (one.name === "row" ? "row" : (data.names[one.engine] ?? ""))));
    if (axis) {
      const kind = axis.unit ? " (symlog)" : "";
      put((axis.left + axis.right) / 2, 16, title + kind, "middle");
      for (const tick of axis.ticks(44)) put(axis.at(tick), 36, minus(String(tick)), "middle");
    } else put(one.left + (right ? one.width - 10 : 10), 36, title, right ? "end" : "start");
  }
  data.rows.forEach((cells, row) => {
    const y = layout.head + (row + 0.5) * layout.row;
    if (board.bands[row] % 2)
      moved.append(
        svg("rect", {
          y: y - layout.row / 2,
          width: layout.width,
          height: layout.row,
          fill: ink,
          "fill-opacity": 0.05,
        }),
      );
    for (const one of layout.spans) {
      const right = one.engine !== undefined || one.name === "reward";
      const words = cellWords(data, one, row, cells);
      const after = one.name === "reward" ? 7 * padding(words, data.decimals) : 0;
      const x = one.left + (right ? one.width - 10 - after : 10);
      if (words) put(x, y + 5, words, right ? "end" : "start");
    }
  });
  const layers = [board.under, board.over].map((one) => {
    const copy = one.cloneNode(true);
    inked(one, copy);
    const group = svg("g", { transform: `translate(0 ${layout.head})` });
    group.append(...copy.childNodes);
    return group;
  });
  const handles = svg("g");
  data.rewards.forEach((value, row) => {
    if (value === null) return;
    const hollow = data.causes[0].say[row] === "0";
    handles.append(
      svg("circle", {
        cx: board.reward.at(value),
        cy: layout.head + (row + 0.5) * layout.row,
        r: 6,
        fill: hollow ? "none" : ink,
        stroke: ink,
        "stroke-width": 2,
      }),
    );
  });
  moved.append(layers[0], handles, layers[1]);
  const bottom = TOP + layout.head + data.rows.length * layout.row;
  text(SIDE, bottom + 26, data.summary);
  text(SIDE, bottom + 48, `Gradebook, case ${data.name}: ${location.href}`, {
    "font-size": 11,
  });
  return made;
}

function cellWords(data, one, row, cells) {
  if (one.name === "row") return String(row);
  if (one.engine !== undefined) return data.panels[data.numbers].text[one.engine]?.[row] ?? "";
  const i = data.columns.indexOf(one.column);
  if (i < 0) return "";
  const value = cells[i];
  if (one.column.kind === "tokens")
    return [...value].map((b) => (b === "1" ? "\u25a0" : "\u25a1")).join("");
  return typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
}

// The look that the style sheet gives, written into the copy.
const LOOK = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-opacity",
  "opacity",
  "font-size",
  "font-weight",
  "paint-order",
];

function inked(from, to) {
  const style = getComputedStyle(from);
  for (const name of LOOK) to.setAttribute(name, style.getPropertyValue(name));
  [...from.children].forEach((child, i) => inked(child, to.children[i]));
}

async function raster(drawn, board) {
  const url = URL.createObjectURL(drawn);
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width * 2;
  canvas.height = image.height * 2;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
