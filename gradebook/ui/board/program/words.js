// What a trained policy says to a prompt, with its mistakes marked and named.

import { html } from "./dom.js";
import { sign } from "./legend.js";

/**
 * @typedef {object} Answer
 * @property {[string, boolean][]} pieces  of its text, and whether each is a mistake
 * @property {string[]} faults  what is wrong, in words
 *
 * @typedef {object} Prompt
 * @property {string} text
 * @property {string} expected
 */

const sheet = new CSSStyleSheet();
sheet.replaceSync(await (await fetch(new URL("policies.css", import.meta.url))).text());

/**
 * Gives trained policies below the root of a component their style, beside its own.
 * @param {ShadowRoot} root
 */
export function dress(root) {
  root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
}

/**
 * @param {"correct" | "faulty"} engine
 * @param {Answer} answer
 * @param {string} name  of the engine, on this page
 */
export function answerOf(engine, { pieces, faults }, name) {
  const text = pieces.map(([piece, wrong]) => html(wrong ? "mark" : "span", { text: piece }));
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

/**
 * What both engines' policies say to one prompt.
 * @param {Prompt} prompt
 * @param {Answer[]} answers  correct, faulty
 * @param {string[]} names  of the engines
 */
export const bothAnswers = (prompt, answers, names) =>
  html(
    "section",
    { class: "both-answers" },
    html(
      "header",
      {},
      html("code", { text: prompt.text }),
      html("span", { text: prompt.expected }),
    ),
    answerOf("correct", answers[0], names[0]),
    answerOf("faulty", answers[1], names[1]),
  );
