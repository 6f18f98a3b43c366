// The challenge: one line at the foot of the board, with its state and the number
// that decides it. On a phone it stands in the sheet, with a slider for the one reward
// that it lets the reader edit.

import { button, html, prose, set } from "./dom.js";

export class ChallengeLine {
  constructor(board) {
    this.board = board;
    this.line = html("div", { class: "line" });
    this.range = html("input", { type: "range" });
    this.about = html("span");
    this.slide = html("label", { class: "slide" }, this.about, this.range);
    this.whole = html("div", { class: "challenge" }, this.line, this.slide);
    this.hinted = null;
    this.range.addEventListener("input", () => this.slid());
    this.range.addEventListener("change", () => {
      this.gesture = undefined;
      board.outbox.finish();
    });
  }

  render() {
    const { data, layout, box, frame } = this.board;
    const { challenge } = data;
    // In the sheet of a phone the question needs the room.
    this.whole.hidden = !challenge || (data.covered && layout.narrow);
    if (this.whole.hidden) return;
    const home = layout.narrow && data.box ? box.sheet : frame;
    if (this.whole.parentNode !== home) home.append(this.whole);
    const key = JSON.stringify([data.epoch, challenge, data.covered, this.hinted, layout.narrow]);
    if (this.key !== key) {
      const inside = this.line.contains(this.board.root.activeElement);
      const name = inside && this.board.root.activeElement.dataset.act;
      this.key = key;
      this.line.replaceChildren(...(data.covered ? this.later(challenge) : this.now(challenge)));
      if (name) this.line.querySelector(`[data-act="${name}"]`)?.focus();
    }
    this.slider(challenge.row ?? null);
  }

  later({ count }) {
    const some = count === 1 ? "one challenge" : `${count} challenges`;
    const when = this.board.data.box.label ? "your prediction" : "the reveal";
    const text = `After ${when}: ${some} on this board`;
    return [html("p", { class: "quiet", text })];
  }

  now(challenge) {
    const { at, count, goal, allowed, hint, insight, solved, shown, live, missing } = challenge;
    const { board } = this;
    const put = (act) => () => {
      this.hinted = null;
      board.put({ do: act, gesture: undefined });
    };
    const link = (text, act, title) =>
      button({ class: "link", "data-act": text, text, title }, act);
    const hinted = this.hinted === at && !solved;
    const links = [];
    const hints = () => {
      this.hinted = at;
      this.render();
    };
    if (hinted)
      links.push(link("Show a solution", put("solution"), "Undo brings your batch back."));
    else if (!solved) links.push(link("Hint", hints));
    if (count > 1 && (solved || hinted)) links.push(link("Next", put("next")));
    const state = solved ? (shown ? "shown" : "\u2713 solved") : "not yet";
    const words = solved && insight ? insight : hinted ? hint || allowed : goal;
    const pill = html("span", {
      class: `pill${solved ? (shown ? " shown" : " solved") : ""}`,
      role: "status",
      title: missing || null,
      text: live ? `${state} \u00b7 ${live}` : state,
    });
    return [
      html("span", { class: "quiet", text: `Challenge ${at + 1} of ${count}` }),
      html("p", { class: "goal", title: allowed }, ...prose(words)),
      pill,
      ...links,
    ];
  }

  // The slider stays the same element while a finger holds it.
  slider(row) {
    const { board } = this;
    this.row = row;
    this.slide.hidden = row === null || !board.layout.narrow;
    if (this.slide.hidden || this.gesture !== undefined) return;
    const [min, max] = board.reward.ends;
    const step = (max - min) / 200;
    set(this.range, { min, max, step, "aria-label": `Reward of row ${row}` });
    set(this.about, { text: `row ${row}\u2019s reward` });
    this.range.value = board.value(row) ?? 0;
  }

  slid() {
    const { board, row } = this;
    this.gesture ??= board.outbox.newGesture();
    const value = String(Number(this.range.value));
    board.put({ do: "cell", row, column: "reward", value, gesture: this.gesture });
  }
}
