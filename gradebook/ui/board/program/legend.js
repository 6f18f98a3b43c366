// What the marks mean: only those that are drawn.

import { alike } from "./causes.js";
import { html, svg } from "./dom.js";

const SIGNS = {
  correct: () => svg("circle", { cx: 8, cy: 8, r: 5.5, class: "correct mark" }),
  faulty: () => svg("path", { d: "M8,1 L15,8 L8,15 L1,8 Z", class: "faulty mark" }),
  bracket: () => svg("path", { d: "M12,1 H6 V15 H12", class: "bracket correct near" }),
  both: () => svg("path", { d: "M12,1 H6 V15 H12", class: "bracket both near" }),
  dashed: () => svg("path", { d: "M4,1 H10 V15 H4", class: "bracket faulty near" }),
  guess: () => svg("path", { d: "M8,1 L15,8 L8,15 L1,8 Z", class: "guess-sign" }),
  hollow: () => svg("circle", { cx: 8, cy: 8, r: 6, class: "hollow-sign" }),
  unlike: () => svg("circle", { cx: 8, cy: 8, r: 6, class: "unlike-sign" }),
  divisor: () => svg("path", { d: "M0,8 H15 M15,4 V12", class: "divisor both" }),
  arrow: () => svg("path", { d: "M1,8 H14 M10,4 L14,8 L10,12", class: "arrow-sign" }),
  ghost: () => svg("circle", { cx: 8, cy: 8, r: 4, class: "ghost-sign" }),
};

// One of them beside words.
export const sign = (name, look = "") =>
  svg("svg", { viewBox: "0 0 16 16", class: `sign ${look}`, "aria-hidden": "true" }, SIGNS[name]());

// Nothing moves under a hand: the legend stands while a handle is held, and
// keeps a place for the sign that comes with the first edit.
export function legend(board) {
  if (board.held && board.legend.key) return;
  const said = items(board);
  const key = JSON.stringify(said);
  if (board.legend.key === key) return;
  board.legend.key = key;
  const edited = said.some(([name]) => name === "ghost");
  board.legend.replaceChildren(
    ...said.map((one) => item(...one)),
    ...(edited ? [] : [item("ghost", BEFORE, "item later")]),
  );
}

const BEFORE = "before the edits";

const item = (name, words, look = "item") =>
  html("span", { class: look }, sign(name), html("span", { text: words }));

function items({ data, causes: { times }, layout }) {
  // Where no reward axis is drawn, no causes are.
  const causes = layout.plain ? [] : data.causes;
  const [correct, faulty] = data.names;
  const shown = [["correct", correct]];
  if (!data.covered) shown.push(["faulty", faulty]);
  else if (data.box?.label && data.box.choices[0].place !== null)
    shown.push(["guess", "your guess"]);
  const grouped = causes.some((c) => c.at.some((x) => x !== null));
  if (grouped) {
    const both = alike(causes);
    shown.push([
      both ? "both" : "bracket",
      `compared with each other; the bracket is at the ${data.baseline}`,
    ]);
    if (!both && causes.length > 1) shown.push(["dashed", `the same, ${faulty}`]);
  }
  if (causes.some((c) => c.scale)) {
    const longer = times > 1 ? `, drawn ${times.toLocaleString("en")} times as long` : "";
    shown.push(["divisor", `divisor${longer}`]);
  }
  const says = causes.map((c) => c.say);
  if (says[0]?.includes("0")) shown.push(["hollow", data.hollow]);
  if (says.length > 1 && says[0] !== says[1]) shown.push(["unlike", "counted by one engine only"]);
  if (data.second) shown.push(["arrow", "second normalization"]);
  if (data.panels.some((p) => p.ghosts)) shown.push(["ghost", BEFORE]);
  return shown;
}
