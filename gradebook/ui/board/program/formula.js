// The formula below the board. It comes with the board's data, so that an edit
// changes it without a run of the page.

/** @import { Component } from "./types.js" */

const latest = { epoch: "", text: "" }; // of the board that was drawn last
/** @type {Map<HTMLElement, string>} */
const places = new Map(); // the element of each place, and the draft it is about

/**
 * What the formula of a draft is now.
 * @param {string} epoch
 * @param {string} text  HTML
 */
export function formula(epoch, text) {
  Object.assign(latest, { epoch, text });
  for (const box of places.keys()) {
    if (box.isConnected) fill(box);
    else places.delete(box);
  }
}

/** @param {HTMLElement} box */
function fill(box) {
  const text = places.get(box) === latest.epoch ? latest.text : "";
  if (box.innerHTML !== text) box.innerHTML = text;
}

/** @type {WeakMap<ShadowRoot, HTMLElement>} */
const mounted = new WeakMap(); // by the element that Streamlit gives

/** @param {Component} component */
export function draw({ data: [epoch], parentElement }) {
  let box = mounted.get(parentElement);
  if (!box?.isConnected) {
    box = document.createElement("div");
    parentElement.appendChild(box);
    mounted.set(parentElement, box);
  }
  places.set(box, epoch);
  fill(box);
}
