// What a trained policy says to a prompt, with its mistakes marked and named.

import { html } from "./dom.js";
import { sign } from "./legend.js";

// One answer: {pieces: [text, is it a mistake], faults: in words}. `name` is the
// engine's on this page.
export function answer(engine, { pieces, faults }, name) {
  const text = pieces.map(([piece, wrong]) =>
    wrong ? html("mark", { text: piece }) : html("span", { text: piece }),
  );
  const wrong = faults.length > 0;
  return html(
    "div",
    { class: "answer", role: "group", "aria-label": `${name} says` },
    sign(engine),
    html("q", {}, ...text),
    html("span", {
      class: ["verdict", wrong && "wrong"],
      text: wrong ? `\u2717 ${faults.join(", ")}` : "\u2713 right",
    }),
  );
}

// What both engines' policies say to one prompt.
export const said = (prompt, answers, names) =>
  html(
    "section",
    { class: "said" },
    html(
      "header",
      {},
      html("code", { text: prompt.text }),
      html("span", { text: prompt.expected }),
    ),
    answer("correct", answers[0], names[0]),
    answer("faulty", answers[1], names[1]),
  );
