// Writes the page's parameters into its address, in place: the browser's Back leaves
// the page.

/** @import { Component } from "./types.js" */

/** @type {WeakMap<ShadowRoot, string>} */
const written = new WeakMap(); // by the element that Streamlit gives

/** @param {Component} component */
export function draw({ data: [{ came, query }], parentElement }) {
  const pair = `${came} ${query}`;
  if (written.get(parentElement) === pair) return;
  written.set(parentElement, pair);
  const url = new URL(location.href);
  url.search = query;
  history.replaceState(history.state, "", url);
}
