// HTML and SVG of the page that is drawn anew without being mounted anew. A link
// with a data-name opens a page of the app, in the same session; a search field
// leaves those links in sight that hold its text.

/** @import { Component } from "./types.js" */

/** @type {WeakMap<ShadowRoot, {box: HTMLElement, drawing: string}>} */
const mounted = new WeakMap(); // by the element that Streamlit gives

/** @param {Component} component */
export function draw({ data: [drawing], parentElement, setTriggerValue }) {
  let here = mounted.get(parentElement);
  if (!here?.box.isConnected) {
    here = { box: document.createElement("div"), drawing: "" };
    here.box.className = "markup";
    parentElement.appendChild(here.box);
    mounted.set(parentElement, here);
  }
  const { box } = here;
  if (here.drawing !== drawing) box.innerHTML = here.drawing = drawing;
  // With a key held down the browser opens a link, in a tab of its own.
  box.onclick = (event) => {
    const at = /** @type {Element} */ (event.target);
    const link = /** @type {HTMLElement | null} */ (at.closest("a[data-name]"));
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    setTriggerValue("opened", link.dataset.name);
  };
  box.oninput = ({ target }) => {
    if (!(target instanceof HTMLInputElement)) return;
    const text = target.value.trim().toLowerCase();
    for (const section of box.querySelectorAll("section")) {
      const stage = section.querySelector("h4")?.textContent ?? "";
      for (const link of /** @type {NodeListOf<HTMLElement>} */ (
        section.querySelectorAll("[data-find]")
      ))
        link.classList.toggle("out", !`${link.dataset.find} ${stage}`.includes(text));
    }
  };
}
