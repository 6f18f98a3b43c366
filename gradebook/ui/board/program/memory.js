// What the learner has done, on a page or in a part without a board.

import { remember } from "./dom.js";

/** @import { Component } from "./types.js" */

/** @param {Component} component */
export function draw({ data: [progress] }) {
  remember(progress);
}
