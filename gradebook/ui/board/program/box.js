// The box of a bug's page: the question with its choices, and after the answer
// the verdict. Its place and size do not depend on which of them it shows. Who
// leads a room has no vote, and only reads the choices.
//
// The large numbers are those of the board, at each edit: of the row in question, or
// of the selected one if there is none. The report's numbers are small beside them.

import { button, html, prose, set } from "./dom.js";
import { sign } from "./legend.js";
import { alike } from "./memo.js";
import { still } from "./glide.js";
import { signed } from "./scale.js";

/** @import { Board } from "./board.js" */
/** @import { Guess } from "./guess.js" */
/** @import { OtherBatch, Question, Verdict } from "./types.js" */

const LONG = [14, 20]; // letters of both numbers from which they are smaller, and small
const MANY = 190; // letters from which a question is smaller
const BACK = "Back to the report\u2019s batch";

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
    // Before the report's sentences, once the numbers are those of another batch.
    this.abouts = [html("b", { class: "about" }), html("b", { class: "about" })];
    this.numbers = [html("span", { class: "figure" }), html("span", { class: "figure" })];
    this.place = html("b");
    this.report = html("span");
    this.beside = html("span", { class: "beside" }, this.place, this.report);
    const arrow = { class: "arrow", "aria-label": "becomes", role: "img", text: "\u2192" };
    this.figures = html(
      "p",
      {},
      sign("correct"),
      this.numbers[0],
      html("span", arrow),
      sign("faulty"),
      this.numbers[1],
      this.beside,
    );
    /** @type {HTMLButtonElement[]} */
    this.buttons = [];
    this.show = button({ class: "show" }, () => board.answer(guess));
    /** @type {unknown} */
    this.drawnFacts = null;
    this.away = false; // a room's server is, and would take no vote
    addEventListener("gradebook-away", (event) => {
      this.away = /** @type {CustomEvent} */ (event).detail;
      if (board.laid) this.render(); // a room may say so before anything is drawn
    });
    // Once the board is out of sight, so is most of the sheet of a phone.
    const shrink = () => {
      const { latest, frame } = this.board;
      const isPast = frame.getBoundingClientRect().bottom < innerHeight / 4;
      this.whole.classList.toggle("small", latest?.covered === false && isPast);
    };
    document.addEventListener("scroll", shrink, { capture: true, passive: true });
  }

  render() {
    const { data, layout } = this.board;
    const { box } = data;
    this.whole.hidden = !box;
    if (!box) return;
    // A verdict scrolls in the sheet of a phone: by the keyboard too.
    set(this.inside, { tabindex: layout.narrow && !data.covered ? 0 : null });
    const { question, label, skip, verdict, otherBatch } = box;
    const facts = [data.epoch, data.covered, question, label, skip, verdict, otherBatch];
    if (!alike(this.drawnFacts, facts)) {
      this.inside.replaceChildren(...this.parts(box));
      if (this.drawnFacts) this.inside.scrollTop = 0;
      this.drawnFacts = facts;
    }
    if (!data.covered) {
      this.follow(box);
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
  parts(box) {
    if (this.board.data.covered) return this.questionParts(box);
    if (box.otherBatch) return this.otherBatchParts(box, box.otherBatch);
    return box.verdict ? this.verdictParts(box, box.verdict) : [];
  }

  /** The line that the large numbers are about. */
  get line() {
    const { lineInQuestion, selected, data } = this.board;
    const isElsewhere = lineInQuestion < 0 || data.box?.otherBatch;
    return isElsewhere ? selected : lineInQuestion;
  }

  /**
   * The numbers are those of the board.
   * @param {Question} box
   */
  follow({ verdict }) {
    const { data, lines, reveal } = this.board;
    const { row, first } = lines[this.line] ?? { row: 0, first: null };
    const texts = this.texts();
    const token = first === null ? "" : `, token ${data.tokenNames?.[this.line]}`;
    const letters = texts.join("").length;
    set(this.figures, {
      class: [
        "figures",
        letters > LONG[0] && "long",
        letters > LONG[1] && "longer",
        data.stale && "old",
      ],
    });
    set(this.numbers[0], { text: texts[0] });
    if (!reveal.playing) set(this.numbers[1], { text: texts[1] });
    set(this.place, { text: `row ${row}${token}` });
    const report = verdict && data.edited ? `report: ${verdict.text.join(" \u2192 ")}` : "";
    set(this.report, { text: report });
    const prefix = verdict && data.edited ? "In the report: " : "";
    for (const about of this.abouts) set(about, { text: prefix });
  }

  /** Both engines' numbers, as text. */
  texts() {
    const { panels, numbers } = this.board.data;
    return [0, 1].map((engine) => panels[numbers].text[engine]?.[this.line] ?? "");
  }

  /** @param {Question} box */
  questionParts(box) {
    const { board } = this;
    const does = html("p", { class: "mechanism" }, ...prose(box.mechanism));
    const look = { class: ["question", box.question.length > MANY && "long"] };
    const title = html("h2", look, ...prose(box.question));
    const header = html("div", {}, does, title, this.hint);
    if (!box.label) {
      const texts = box.choices.map(({ text }) => html("li", {}, ...prose(text)));
      return [header, html("ul", { class: "read" }, ...texts)];
    }
    this.buttons = box.choices.map(({ text }, choice) =>
      button({ class: "choice" }, () => this.guess.choose(choice), ...prose(text)),
    );
    set(this.show, { text: box.label });
    const pass = () => board.answer({ choice: -1, place: null });
    const skip = button({ class: "link", text: box.skip ?? "Skip" }, pass);
    return [
      header,
      html(
        "div",
        { class: "answers" },
        html("div", { class: "choices", role: "group", "aria-label": "Choices" }, ...this.buttons),
        html("div", { class: "acts" }, this.show, skip),
      ),
    ];
  }

  /** @param {Question} box */
  help({ label, choices, row, token, otherBatch }) {
    const { edited, names } = this.board.data;
    const original = edited ? "The question is about the original batch. " : "";
    const about = otherBatch ? `${otherBatch.source} ` : original;
    const where = typeof token === "number" ? `token ${token} of row ${row}` : `row ${row}`;
    const drag = !label
      ? "The learners vote, and you reveal."
      : (choices[0]?.place ?? null) === null
        ? "Choose an answer."
        : `Drag the empty diamond on ${where} to your guess, or choose an answer.`;
    return `${about}${drag} Blue dot: ${names[0]}.`;
  }

  /**
   * The numbers with a sentence below them, and a text beside them.
   * @param {boolean | null} right  whether the guess was; null for none
   * @param {(Node | string)[]} sentence
   * @param {HTMLElement[]} story
   */
  answerParts(right, sentence, story) {
    const mark = right === null ? "" : right ? "\u2713 " : "\u2715 ";
    const looks = right === null ? "skipped" : right ? "right" : "wrong";
    return [
      html(
        "div",
        { tabindex: -1, class: "heir" },
        this.figures,
        html(
          "p",
          { class: `sentence words ${looks}` },
          html("b", { class: "mark", text: mark }),
          ...sentence,
        ),
      ),
      html("div", { class: "story words" }, ...story),
    ];
  }

  /**
   * @param {Question} box
   * @param {Verdict} verdict
   */
  verdictParts(box, { right, sentence, why, rule }) {
    return this.answerParts(
      box.guess === null ? null : right,
      [this.abouts[0], ...prose(`${this.guessSentence(box)}${sentence}`)],
      [html("p", {}, this.abouts[1], ...prose(why)), rulePart(rule)],
    );
  }

  /**
   * Of a batch that is not the case's own.
   * @param {Question} box
   * @param {OtherBatch} otherBatch
   */
  otherBatchParts(box, { source, rule, sentence, choice, right }) {
    const back = button({ class: "link", text: BACK }, () => this.board.put({ do: "reset" }));
    const guess = choice ? `You said: ${choice}. ` : "";
    return this.answerParts(right ?? null, prose(`${guess}${sentence ?? ""}`), [
      html("p", { class: "quiet source" }, ...prose(`${source} `), back),
      html("p", {}, ...prose(box.mechanism)),
      rulePart(rule),
    ]);
  }

  /**
   * The guess in a sentence: what was chosen, or where the diamond was put.
   * @param {Question} box
   */
  guessSentence({ choices, guess, place }) {
    if (place === null) return "";
    const choice = guess === null ? undefined : choices[guess];
    if (choice?.place === place) return `You said: ${choice.text}. `;
    return `You put it ${this.guess.words(place).replace(/^(?!beyond)/, "at ")}. `;
  }

  /**
   * The faulty number while the diamond travels; at the end its own text.
   * @param {number} share
   */
  count(share) {
    const { panels, numbers } = this.board.data;
    const [from, to] = [0, 1].map((engine) => panels[numbers].engines[engine]?.[this.line]);
    const text = this.texts()[1];
    if (share >= 1 || typeof from !== "number" || typeof to !== "number" || still.matches) {
      this.numbers[1].textContent = text;
      return;
    }
    const digits = text.split(".")[1]?.length ?? 0;
    this.numbers[1].textContent = signed(from + (to - from) * share, digits);
  }

  /** The verdict gets the focus. */
  focus() {
    const heir = /** @type {HTMLElement | null} */ (this.whole.querySelector(".heir"));
    heir?.focus({ preventScroll: true });
  }
}

/** @param {string} rule */
const rulePart = (rule) => html("p", {}, html("b", { text: "The rule. " }), ...prose(rule));
