// Writes the page's parameters into its address, in place: the browser's Back leaves
// the page.

/** @import { Component } from "./types.js" */

/** @type {WeakMap<ShadowRoot, string>} */
const changes = new WeakMap(); // the last one, by the element that Streamlit gives

/** @param {Component} component */
export function draw({ data: [{ arrival, query }], parentElement }) {
  const change = `${arrival} ${query}`;
  if (changes.get(parentElement) === change) return;
  changes.set(parentElement, change);
  write(query);
}

/**
 * Writes the page's own parameters; those with other names stay as they are.
 * @param {string} query
 * @param {string[]} otherNames
 */
export function writePageParameters(query, otherNames) {
  const before = new URLSearchParams(location.search);
  const after = new URLSearchParams(query);
  for (const name of otherNames) for (const value of before.getAll(name)) after.append(name, value);
  if (`${before}` !== `${after}`) write(`${after}`);
}

/** @param {string} query */
function write(query) {
  const url = new URL(location.href);
  url.search = query;
  history.replaceState(history.state, "", url);
}
