// Edits on their way to the server.
//
// Each edit has a number. A message carries every edit that the server has
// not acknowledged, so one that is lost, late or repeated changes nothing.
// One message is on its way at a time; the newest values follow it.
//
// Edits with one gesture (a drag, typing in a cell) are one act, which ends
// with `finish`: it commits the last of them. An edit without a gesture is an act
// by itself. When the server has answered a finished act, and says that the rest of
// the page is behind, the page hears of it; if somebody pauses in a gesture, too.

/** @import { Edit, Message } from "./types.js" */

const PATIENCE = 3000; // ms until a message without an answer goes out again
const QUICK = 150; // ms that an answer may take before the server has much to do

/**
 * The address that takes the edits of a draft, and gives its picture.
 * @param {string} epoch
 */
export const server = (epoch) => new URL(`../../board-edits/${epoch}`, import.meta.url);

export class Outbox {
  /**
   * @param {(message: Message) => void} send  carries a message to the server
   * @param {() => void} settled
   */
  constructor(send, settled) {
    this.send = send;
    this.settled = settled;
    this.epoch = "";
    /** @type {(Edit & {n: number})[]} */
    this.waiting = []; // edits without acknowledgement, in order
    this.sent = 0; // number of the last edit that was sent
    this.last = 0; // number of the last edit
    this.busy = false; // a message is on its way
    this.finished = 0; // number of the last edit of a finished act
    this.open = false; // the last edit belongs to a gesture that goes on
    this.told = 0; // what the rest of the page has heard of, or need not hear of
    this.behind = false; // the last answer says that the rest has to be drawn
    this.gesture = Date.now(); // another number than before a reload
    this.left = 0; // when the last message left
    this.trip = 0; // ms that the last answer took
    this.away = false; // the server did not answer, or has this draft no more
    /** @type {number | undefined} */
    this.pause = undefined;
    /** @type {number | undefined} */
    this.patience = undefined;
  }

  /**
   * What came with the data: another epoch is another draft on the server,
   * which knows nothing of edits that were meant for the old one. If the
   * server was away they are made again, on the draft as it was kept.
   * @param {string} epoch
   * @param {number} ack
   * @param {boolean} [behind]  the rest of the page has to be drawn
   */
  heard(epoch, ack, behind = false) {
    this.behind = behind;
    if (epoch !== this.epoch) {
      const again = this.away ? this.waiting : [];
      this.epoch = epoch;
      this.waiting = [];
      this.last = this.sent = this.finished = this.told = ack;
      this.busy = this.away = false;
      for (const edit of again) this.put(edit);
      if (again.length) this.finish();
    }
    this.last = Math.max(this.last, ack);
    this.waiting = this.waiting.filter((edit) => edit.n > ack);
    if (this.busy && ack >= this.sent) {
      this.busy = false;
      clearTimeout(this.patience);
      this.trip = performance.now() - this.left;
    }
    this.next();
  }

  /**
   * A new edit. A value of the same gesture that was not sent is replaced.
   * @param {Edit} edit
   */
  put(edit) {
    this.last += 1;
    const before = this.waiting.at(-1);
    if (before && before.n > this.sent && replaces(edit, before)) this.waiting.pop();
    this.waiting.push({ ...edit, n: this.last });
    if (edit.do !== "select") this.open = edit.gesture !== undefined;
    if (edit.gesture === undefined) this.finished = this.last;
    this.next();
  }

  /** The act of the last edit has ended. */
  finish() {
    if (this.open) this.commit();
    this.pauses();
  }

  /** Nothing comes for a while: the rest of the page follows. */
  pauses() {
    this.finished = this.last;
    this.next();
  }

  /** The last edit of the gesture says so, or where it was sent another one does. */
  commit() {
    this.open = false;
    const last = this.waiting.at(-1);
    if (last && last.n > this.sent && last.gesture !== undefined && last.do !== "select") {
      last.commit = true;
      return;
    }
    this.last += 1;
    this.waiting.push({ do: "commit", n: this.last });
  }

  next() {
    if (this.busy) return;
    if (this.waiting.length) this.later();
    else if (this.finished > this.told) {
      this.told = this.finished;
      if (this.behind) this.settled();
    }
  }

  newGesture() {
    this.gesture += 1;
    return this.gesture;
  }

  /** The server has heard everything. */
  get idle() {
    return !this.waiting.length;
  }

  /**
   * While a hand is moving, a loaded server gets as much time between two
   * messages as its answer took beyond that. (A slow browser takes 110 ms of
   * which the server works 15.)
   */
  later() {
    const moving = this.finished < this.last;
    const due = this.left + 2 * this.trip - QUICK;
    const wait = moving ? Math.min(due - performance.now(), 1000) : 0;
    clearTimeout(this.pause);
    if (wait > 0) this.pause = setTimeout(() => this.flush(), wait);
    else this.flush();
  }

  flush() {
    clearTimeout(this.pause);
    clearTimeout(this.patience);
    if (!this.waiting.length) return;
    this.busy = true;
    this.left = performance.now();
    this.sent = this.last;
    const patience = Math.max(PATIENCE, 4 * this.trip);
    this.patience = setTimeout(() => this.flush(), patience);
    this.send({ epoch: this.epoch, edits: this.waiting });
  }

  /**
   * What a place of the table will hold once the server has heard everything;
   * undefined if nothing is on its way to it. Of tokens, that of `first`.
   * @param {number} row
   * @param {string} column
   * @param {number | null} first
   * @returns {string | boolean | undefined}
   */
  pending(row, column, first = null) {
    for (let i = this.waiting.length - 1; i >= 0; i--) {
      const edit = this.waiting[i];
      if (!STEADY.has(edit.do)) return undefined;
      if (edit.row !== row) continue;
      if (edit.do === "cell" && edit.column === column && first === null) return edit.value;
      if (edit.do === "tokens" && edit.column === column && covers(edit, first)) return edit.value;
    }
    return undefined;
  }

  /**
   * The row's mask ("101...") with the edits that are on their way.
   * @param {number} row
   * @param {string} bits
   */
  mask(row, bits) {
    let edited = bits;
    for (const { do: name, row: of, start = 0, stop = 0, value } of this.waiting) {
      if (name !== "mask" || of !== row) continue;
      const fill = (value ? "1" : "0").repeat(stop - start);
      edited = edited.slice(0, start) + fill + edited.slice(stop);
    }
    return edited;
  }

  /** The row and token that will be selected. */
  get selection() {
    return this.waiting.findLast((edit) => edit.do === "select");
  }

  stop() {
    clearTimeout(this.pause);
    clearTimeout(this.patience);
  }
}

// After any other edit a row's number may mean another row.
const STEADY = new Set(["cell", "tokens", "mask", "select", "stage", "commit"]);

/**
 * @param {Edit} edit
 * @param {number | null} token
 */
const covers = ({ start = 0, stop = 0 }, token) => token !== null && start <= token && token < stop;

/**
 * @param {Edit} edit
 * @param {Edit} before
 */
const replaces = (edit, before) =>
  edit.do === before.do &&
  (edit.do === "select" ||
    edit.do === "go" ||
    ((edit.do === "cell" || edit.do === "tokens") &&
      edit.gesture !== undefined &&
      edit.gesture === before.gesture &&
      edit.row === before.row &&
      edit.start === before.start &&
      edit.column === before.column));
