// The header: names of the columns, and the axes with their numbers.

import { button, html, set, svg } from "./dom.js";
import { minus, short } from "./scale.js";

const LETTER = 6.8; // pixels of a title's letter

export function head(board) {
  const { data, layout } = board;
  const said = JSON.stringify([
    layout,
    data.names,
    [data.numbers, data.stale, data.covered, data.edited],
    data.panels.map((p) => p.title),
    [board.reward, ...board.panels].map((a) => [a.low, a.high, a.unit]),
  ]);
  if (said === board.headed) return;
  board.headed = said;
  const cells = layout.spans.map((span) => cell(board, span));
  board.head.replaceChildren(...cells);
}

function cell(board, span) {
  const { data, layout } = board;
  const made = html("div", {
    role: "columnheader",
    class: "cell",
    style: `left:${span.left}px;width:${span.width}px`,
  });
  if (span.name === "row") {
    set(made, { class: "cell number" });
    made.append(html("span", { text: layout.narrow ? "#" : "row" }));
  } else if (span.name === "reward axis") {
    if (layout.plain) return made;
    axis(board, made, board.reward, span, "reward", "reward axis");
  } else if (span.panel !== undefined) {
    const { title: whole } = data.panels[span.panel];
    const crowded = whole.length * LETTER > span.width;
    const title = crowded ? whole.replace(/ of the .*/, "") : whole;
    axis(board, made, board.panels[span.panel], span, title, span.name);
  } else if (span.engine !== undefined) {
    set(made, { class: "cell number" });
    const name = data.names[span.engine] + (data.stale ? ", before" : "");
    set(made, { "aria-label": `${data.panels[data.numbers].title}, ${name}` });
    const [part] = data.panels[data.numbers].title.split(" of the ");
    if (data.panels.length > 1) made.append(html("div", { text: part }));
    made.append(html("span", { text: name }));
  } else {
    const { title, help, kind } = span.column;
    const right = span.name === "reward";
    set(made, { class: `cell ${right ? "number" : kind}`, title: help || null });
    made.append(html("span", { class: help ? "helped" : null, text: title }));
  }
  return made;
}

// That the axis became wider with the answer.
function widened({ data, reveal }, panel) {
  const [before, now] = data.panels[panel].reach;
  if (!data.box?.verdict || data.edited || !reveal.wide || before === now) return "";
  return `\u00b7 axis widened, \u00b1${before} \u2192 \u00b1${now}`;
}

function axis(board, made, axis, span, title, name) {
  made.classList.add("axis");
  const line = html("span", { class: "title", text: title });
  made.append(line);
  const note = name === "reward axis" ? "(drag)" : widened(board, span.panel);
  if (note && !board.layout.narrow) line.append(" ", html("span", { class: "quiet", text: note }));
  if (axis.bendable) {
    const other = axis.unit ? "linear" : "symlog";
    const bend = {
      class: "bend",
      title: `A ${axis.unit ? "symlog" : "linear"} axis. Change to ${other}.`,
      text: axis.unit ? "symlog" : "linear",
    };
    line.append(
      " ",
      button(bend, () => board.bend(name)),
    );
  }
  const scale = svg("svg", {
    class: "numbers",
    "aria-hidden": "true",
    width: span.width,
    height: 18,
  });
  for (const tick of axis.ticks(board.layout.narrow ? 26 : 44)) {
    const x = axis.at(tick) - span.left;
    scale.append(svg("text", { x, y: 13, text: minus(short(tick)) }));
  }
  made.append(scale);
}
