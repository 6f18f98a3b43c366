// Home's frame: a board on which one reward is dragged, and what becomes of two policies
// that train with it. Every stop of the reward is here from the start, so a drag asks the
// server for nothing.

import { Board } from "./board.js";
import { Consequence, inDigits, lastOf } from "./consequence.js";
import { html, remember } from "./dom.js";
import { sign } from "./legend.js";
import { dress } from "./words.js";

/** @import { Right } from "./consequence.js" */
/** @import { Component, Data, Message } from "./types.js" */

/**
 * @typedef {object} Stop  a value of the dragged reward
 * @property {number} value
 * @property {Partial<Data>} board  what the board shows otherwise
 * @property {[string, string]} text  both engines' advantage of the row that is told of
 * @property {string} way  what the bug does to it
 *
 * @typedef {object} HomeData
 * @property {Data} board
 * @property {number} start
 * @property {string} about
 * @property {Stop[]} stops
 * @property {Right} right
 * @property {Record<"title" | "story" | "task" | "method", string>} scene
 * @property {string} note  how the numbers were made
 * @property {string} progress
 */

/** @type {WeakSet<ShadowRoot>} */
const mounted = new WeakSet();

/** @param {Component} component */
export function draw({ data: [data], parentElement: root }) {
  remember(data.progress);
  if (mounted.has(root)) return;
  mounted.add(root);
  new Home(root, data);
}

class Home {
  /**
   * @param {ShadowRoot} root
   * @param {HomeData} data
   */
  constructor(root, data) {
    this.data = data;
    this.stop = data.start;
    this.heads = [html("div", { class: "result-head" }), html("div", { class: "result-head" })];
    const place = html("div");
    this.consequence = new Consequence(data.right);
    const left = html("div", {}, this.heads[0], place, provenance(data.note));
    const right = html("div", {}, this.heads[1], this.consequence.element);
    root.replaceChildren(html("div", { class: "board home" }, scene(data.scene), left, right));
    this.board = new Board(root, { ask: (message) => this.ask(message) }, place);
    dress(root);
    this.board.update({ ...data.board, ...data.stops[this.stop].board });
    this.show();
  }

  /**
   * What the board shows after its edits: the stop to which the reward was moved.
   * @param {Message} message
   * @returns {Promise<Data>}
   */
  async ask({ edits }) {
    const { stops, board } = this.data;
    const value = Number(edits.findLast((edit) => edit.do === "cell")?.value);
    const moved = stops.findIndex((stop) => stop.value === value);
    if (moved >= 0 && moved !== this.stop) {
      this.stop = moved;
      this.show();
    }
    const ack = edits[edits.length - 1].n ?? 0;
    return { ...board, ...stops[this.stop].board, ack, version: ack };
  }

  show() {
    const { stops, about, right } = this.data;
    const { text, way, value } = stops[this.stop];
    this.heads[0].replaceChildren(
      ...numbers(text),
      html("p", {}, `${about} `, html("b", { text: way })),
    );
    const ends = [lastOf(right.correct), lastOf(right.stops[this.stop].mean)];
    this.heads[1].replaceChildren(
      ...numbers(ends.map(inDigits)),
      html("p", {}, `${right.solved} `, html("b", { text: String(value) })),
    );
    this.consequence.show(this.stop);
  }
}

/** @param {HomeData["scene"]} words */
const scene = ({ title, story, task, method }) =>
  html(
    "div",
    { class: "scene" },
    html("p", {}, html("b", { text: title }), ` ${story} `, html("b", { text: task })),
    html("p", { text: method }),
  );

/** @param {string} note */
const provenance = (note) =>
  html(
    "details",
    {},
    html("summary", { text: "How these numbers were made" }),
    html("p", { text: note }),
  );

/** @param {string[]} texts  correct, faulty */
const numbers = ([correct, faulty]) => [
  sign("correct"),
  html("b", { text: correct }),
  html("small", { text: "correct" }),
  html("span", { text: "\u2192", role: "img", "aria-label": "becomes" }),
  sign("faulty"),
  html("b", { text: faulty }),
  html("small", { text: "faulty" }),
];
