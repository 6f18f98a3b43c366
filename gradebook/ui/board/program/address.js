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
  write(query);
}

/**
 * The parameters that are the page's own; the others stay as they are.
 * @param {string} own
 * @param {string[]} others  names of those that are not the page's own
 */
export function writeOwn(own, others) {
  const now = new URLSearchParams(location.search);
  const due = new URLSearchParams(own);
  for (const name of others) for (const value of now.getAll(name)) due.append(name, value);
  if (`${now}` !== `${due}`) write(`${due}`);
}

/** @param {string} query */
function write(query) {
  const url = new URL(location.href);
  url.search = query;
  history.replaceState(history.state, "", url);
}
