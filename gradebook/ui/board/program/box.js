// The box of a bug's page: the question with its choices, and after the answer
// the verdict. Its place and size do not depend on which of them it shows. Who
// leads a room has no vote, and only reads the choices.

import { button, html, prose, set } from "./dom.js";
import { sign } from "./legend.js";
import { alike } from "./memo.js";
import { still } from "./glide.js";
import { signed } from "./scale.js";

/** @import { Board } from "./board.js" */
/** @import { Guess } from "./guess.js" */
/** @import { Question, Verdict } from "./types.js" */

export class Box {
  /**
   * @param {Board} board
   * @param {Guess} guess
   */
  constructor(board, guess) {
    this.board = board;
    this.guess = guess;
    this.whole = html("section", { class: "box", "aria-label": "Prediction" });
    this.inside = html("div", { class: "inside" });
    this.sheet = html("div", { class: "in-sheet" });
    this.whole.append(this.inside, this.sheet);
    this.hint = html("p", { class: "hint" });
    this.about = html("span", { class: "about" });
    this.number = html("span", { class: "figure" });
    /** @type {HTMLButtonElement[]} */
    this.buttons = [];
    this.show = button({ class: "show" }, () => board.answer(guess));
    /** @type {unknown} */
    this.drawn = null;
    this.away = false; // a room's server is, and would take no vote
    addEventListener("gradebook-away", (event) => {
      this.away = /** @type {CustomEvent} */ (event).detail;
      if (board.known) this.render();
    });
    const shrink = () => {
      const verdict = this.board.data?.box?.verdict;
      const scrolled = document.querySelector(".stMain")?.scrollTop ?? scrollY;
      this.whole.classList.toggle("small", Boolean(verdict) && scrolled > 220);
    };
    document.addEventListener("scroll", shrink, { capture: true, passive: true });
  }

  render() {
    const { data, layout } = this.board;
    const { box } = data;
    this.whole.hidden = !box;
    if (!box) return;
    // A verdict scrolls in the sheet of a phone: by the keyboard too.
    set(this.inside, { tabindex: layout.narrow && box.verdict ? 0 : null });
    const now = [data.epoch, box.question, box.label, box.skip, box.verdict];
    if (!alike(this.drawn, now)) {
      const parts = box.verdict ? this.verdict(box, box.verdict) : this.question(box);
      this.inside.replaceChildren(...parts);
      if (this.drawn) this.inside.scrollTop = 0;
      this.drawn = now;
    }
    if (box.verdict) {
      const edited = "This is about the original batch.";
      this.about.textContent = data.edited ? edited : "";
      return;
    }
    this.hint.textContent = this.help(box);
    if (!box.label) return;
    this.buttons.forEach((button, choice) =>
      set(button, { "aria-pressed": this.guess.choice === choice ? "true" : "false" }),
    );
    const refused = this.away || Boolean(box.over);
    set(this.show, { disabled: this.guess.choice === null || refused });
  }

  /** @param {Question} box */
  question(box) {
    const { board } = this;
    const does = html("p", { class: "mechanism" }, ...prose(box.mechanism));
    const title = html("h2", { class: "question" }, ...prose(box.question));
    const asked = html("div", {}, does, title, this.hint);
    if (!box.label) {
      const texts = box.choices.map(({ text }) => html("li", {}, ...prose(text)));
      return [asked, html("ul", { class: "read" }, ...texts)];
    }
    this.buttons = box.choices.map(({ text }, choice) =>
      button({ class: "choice" }, () => this.guess.choose(choice), ...prose(text)),
    );
    set(this.show, { text: box.label });
    const pass = () => board.answer({ choice: -1, place: null });
    const skip = button({ class: "link", text: box.skip ?? "Skip" }, pass);
    return [
      asked,
      html(
        "div",
        { class: "answers" },
        html("div", { class: "choices", role: "group", "aria-label": "Choices" }, ...this.buttons),
        html("div", { class: "acts" }, this.show, skip),
      ),
    ];
  }

  /** @param {Question} box */
  help({ label, choices, row, token }) {
    const { edited, names } = this.board.data;
    const about = edited ? "The question is about the original batch. " : "";
    const where = typeof token === "number" ? `token ${token} of row ${row}` : `row ${row}`;
    const drag = !label
      ? "The learners vote, and you reveal."
      : choices[0].place === null
        ? "Choose an answer."
        : `Drag the empty diamond on ${where} to your guess, or choose an answer.`;
    return `${about}${drag} Blue dot: ${names[0]}.`;
  }

  /**
   * @param {Question} box
   * @param {Verdict} verdict
   */
  verdict(box, { text, right, said, why, rule }) {
    const { guess } = box;
    set(this.number, { text: text[1] });
    const mark = guess === null ? "" : right ? "\u2713 " : "\u2715 ";
    const looks = guess === null ? "skipped" : right ? "right" : "wrong";
    const arrow = { class: "arrow", "aria-label": "becomes", role: "img", text: "\u2192" };
    return [
      html(
        "div",
        { tabindex: -1, class: "heir" },
        html(
          "p",
          { class: "figures" },
          sign("correct"),
          html("span", { class: "figure", text: text[0] }),
          html("span", arrow),
          sign("faulty"),
          this.number,
        ),
        html(
          "p",
          { class: `sentence words ${looks}` },
          html("b", { class: "mark", text: mark }),
          ...prose(`${this.placed(box)}${said} `),
          this.about,
        ),
      ),
      html(
        "div",
        { class: "story words" },
        html("p", {}, ...prose(why)),
        html("p", {}, html("b", { text: "The rule. " }), ...prose(rule)),
      ),
    ];
  }

  /**
   * The guess in a sentence: what was chosen, or where the diamond was put.
   * @param {Question} box
   */
  placed({ choices, guess, place }) {
    if (place === null) return "";
    const chosen = guess === null ? undefined : choices[guess];
    if (chosen?.place === place) return `You said: ${chosen.text}. `;
    return `You put it ${this.guess.words(place).replace(/^(?!beyond)/, "at ")}. `;
  }

  /**
   * The faulty number while the diamond travels; at the end its own text.
   * @param {number} share
   */
  count(share) {
    const verdict = this.board.data.box?.verdict;
    if (!verdict) return;
    const { text, values } = verdict;
    const [from, to] = values;
    if (share >= 1 || from === null || to === null || still.matches) {
      this.number.textContent = text[1];
      return;
    }
    const digits = text[1].split(".")[1]?.length ?? 0;
    this.number.textContent = signed(from + (to - from) * share, digits);
  }

  /** The verdict gets the focus. */
  focus() {
    const heir = /** @type {HTMLElement | null} */ (this.whole.querySelector(".heir"));
    heir?.focus({ preventScroll: true });
  }
}
