// Shows what a click has opened from its top.

/** @import { Component } from "./types.js" */

/** @type {WeakSet<ShadowRoot>} */
const shown = new WeakSet(); // by the element that Streamlit gives

/** @param {Component} component */
export function draw({ data: [opened], parentElement }) {
  if (shown.has(parentElement)) return; // an answer moves nothing
  shown.add(parentElement);
  parentElement.host.closest(`.st-key-${opened}`)?.scrollIntoView({ block: "start" });
}
