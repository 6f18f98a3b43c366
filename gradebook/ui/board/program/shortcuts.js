// What the rest of the page sends: page-wide keys, and that it has to follow
// an edit of the board.
//
// Each key press is a numbered message to the server; those that the server
// has not acknowledged are sent again with the next one.

/** @import { Component } from "./types.js" */

const PATIENCE = 3000; // ms until the rest is asked again to follow
const TEXT =
  'textarea, [contenteditable="true"], input:not(' +
  '[type="checkbox"], [type="radio"], [type="range"], [type="button"])';
const CONTROL = 'button, a, input, select, textarea, summary, [role], [tabindex="0"]:not(main)';

/** @type {Record<string, string>} */
const PRESENTING = { ArrowLeft: "back", ArrowRight: "on", " ": "reveal" };

/**
 * @typedef {object} PageData
 * @property {string} epoch
 * @property {boolean} presenter
 * @property {number} seen  the last key press that the server has taken
 * @property {number} heard  the last `follow` that it has taken
 * @property {string} [top]
 * @property {string} [focus]
 */

/** @type {WeakMap<ShadowRoot, Keys>} */
const live = new WeakMap(); // by the element that Streamlit gives

/** @param {Element} target */
function isTyping(target) {
  if (!target.matches?.(TEXT)) return false;
  // A select box whose list is closed is no place to type.
  return (
    target.getAttribute("role") !== "combobox" || target.getAttribute("aria-expanded") === "true"
  );
}

/**
 * The act that a key asks for, "" for none.
 * @param {KeyboardEvent} event
 * @param {boolean} presenter
 */
function pressed(event, presenter) {
  if (event.defaultPrevented || event.altKey) return "";
  const target = /** @type {Element} */ (event.composedPath()[0]);
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key?.toLowerCase() === "z")
    return isTyping(target) ? "" : event.shiftKey ? "redo" : "undo";
  if (!presenter || command || event.shiftKey || event.repeat) return "";
  // The page itself can have the focus, too; it is no control. Nor is a button that was
  // clicked: space reveals whatever was clicked last. One that the keyboard has reached
  // is pressed by it.
  const control = target !== document.body && target.closest?.(CONTROL);
  if (control && !(control.matches("button") && !control.matches(":focus-visible"))) return "";
  return PRESENTING[event.key] ?? "";
}

class Keys {
  /**
   * @param {PageData} data
   * @param {Component["setStateValue"]} send
   */
  constructor(data, send) {
    this.data = data;
    this.send = send;
    /** @type {[number, string][]} */
    this.waiting = [];
    this.last = 0;
    this.asked = 0;
    this.top = "";
    this.focus = "";
    /** @type {number | undefined} */
    this.patience = undefined;
    this.listen = this.listen.bind(this);
    this.follow = this.follow.bind(this);
    document.addEventListener("keydown", this.listen);
    addEventListener("gradebook-settled", this.follow);
  }

  /** @param {KeyboardEvent} event */
  listen(event) {
    const name = pressed(event, this.data.presenter);
    if (!name) return;
    event.preventDefault();
    this.last += 1;
    this.waiting.push([this.last, name]);
    this.send("pressed", { epoch: this.data.epoch, keys: this.waiting });
    if (name === "back" || name === "on")
      document.querySelector(".st-key-stage")?.scrollIntoView({ block: "center" });
  }

  /** The board has its answer to a finished edit: the rest follows. */
  follow() {
    this.asked = Date.now();
    this.send("settled", this.asked);
    clearTimeout(this.patience);
    this.patience = setTimeout(this.follow, PATIENCE);
  }

  /**
   * What a run of the page says.
   * @param {PageData} data
   */
  hear(data) {
    if (this.data.epoch !== data.epoch) this.waiting = [];
    this.data = data;
    this.last = Math.max(this.last, data.seen);
    this.waiting = this.waiting.filter(([number]) => number > data.seen);
    if (data.heard >= this.asked) clearTimeout(this.patience);
    if (data.top && this.top !== data.top) {
      this.top = data.top;
      // The title's end at the window's end: nothing is above the title.
      document.querySelector("h1")?.scrollIntoView({ block: "end" });
    }
    if (data.focus && this.focus !== data.focus) {
      this.focus = data.focus;
      const at = document.activeElement;
      if (at && at !== document.body) return;
      const heir = /** @type {HTMLElement | null} */ (document.querySelector(".st-key-verdict"));
      heir?.setAttribute("tabindex", "-1");
      heir?.focus({ preventScroll: true });
    }
  }

  stop() {
    document.removeEventListener("keydown", this.listen);
    removeEventListener("gradebook-settled", this.follow);
    clearTimeout(this.patience);
  }
}

/** @param {Component} component */
export function draw({ data: [data], parentElement, setStateValue }) {
  let keys = live.get(parentElement);
  if (!keys) {
    live.set(parentElement, (keys = new Keys(data, setStateValue)));
    parentElement.host.toggleAttribute("data-listening", true);
  }
  keys.send = setStateValue;
  keys.hear(data);
  return () => {
    if (parentElement.isConnected) return; // an earlier call's end
    keys.stop();
    live.delete(parentElement);
  };
}
