"""The box is tall enough for every question and every verdict of every case, and the
row in question is in sight beside it: on the board's own program, without a page for
each case."""

from dataclasses import replace

from gradebook.bugs import BUGS
from gradebook.cases.scenario import load, names
from gradebook.cases.state import Opened
from gradebook.ui.board.lesson import OTHER_BATCH_CHOICES, lesson
from gradebook.ui.parts.drafts import SKIPPED, Guess, PageDraft, Progress

SIZES = [(1280, 800), (1024, 700), (390, 844), (390, 664), (640, 400)]
MOUNT = """async ([address, cases]) => {
  const { Board } = (await import(address)).modules.board;
  const host = document.createElement("div");
  host.style.cssText = "position:absolute;inset:0;z-index:9;background:white;"
    + "--st-font:'Source Sans',sans-serif;--pinned:60px;overflow:auto;"
    + "padding:64px max(12px, min(32px, 5vw - 20px))";
  document.querySelector(".stMain").replaceChildren(host);
  const root = host.attachShadow({ mode: "open" });
  const place = document.createElement("div");
  root.append(place);
  window.board = new Board(root, { ask: async () => null }, place);
  window.cases = cases;
}"""
# What does not fit, case by case; on a phone and in a short window the numbers and the
# sentence have to, and the rest can be scrolled to.
MISFITS = """(whole) => {
  const found = [];
  for (const [name, data] of cases) {
    if (!board.latest) board.update(data);
    board.latest = data; // what is around the box does not change it
    board.arrange();
    board.box.render();
    const box = board.whole.querySelector(".box");
    const inside = box.querySelector(".inside");
    const part = box.querySelector(".heir") ?? inside.firstElementChild;
    const end = inside.getBoundingClientRect().bottom + 1;
    const over = whole
      ? box.scrollHeight - box.clientHeight
      : part.getBoundingClientRect().bottom
        - Math.min(end, box.getBoundingClientRect().bottom);
    if (over > 1) found.push(`${name}: ${Math.round(over)} px`);
  }
  return found;
}"""


def shown():
    """Every case covered, and with each answer, as it came and edited."""
    version = 0
    for name in names():
        case = load(name)
        draft, progress = PageDraft(case), Progress()
        answers = [None, *enumerate(case.prediction.choices)]
        for answer in answers:
            if answer is not None:
                places = case.prediction.places or [None] * len(answers)
                progress.answer(name, answer[0], places[answer[0]])
            data = lesson(draft, progress)
            data["box"] |= {"label": "Show what it does", "reveals": True}
            for edited in (False, True):
                version += 1
                words = "covered" if answer is None else answer[1]
                state = {"edited": edited, "version": version, "challenge": None}
                yield f"{name}, {words}{', edited' * edited}", data | state


def own():
    """Each bug's page with a batch from elsewhere: covered, and with each answer."""
    for number, name in enumerate(BUGS):
        draft = PageDraft(load(name))
        opened = Opened("Step 120 of grpo-run-17.jsonl, from the check", draft.state)
        draft.become(replace(draft.state, opened=opened))
        for choice in (None, *range(len(OTHER_BATCH_CHOICES))):
            progress = Progress()
            if choice is not None:
                progress.answer(name, SKIPPED)
                draft.page.guess = Guess(choice, 0.0)
            data = lesson(draft, progress)
            data["box"] |= {"label": "Show what it does", "reveals": True}
            state = {"version": FIRST_OWN + 9 * number + (choice or 0) + 1}
            yield f"{name}, from elsewhere, {choice}", data | state


FIRST_OWN = 10**6
"""Versions of batches from elsewhere: above those of the cases."""


def test_the_box_holds_every_question_and_every_verdict(read):
    page = read("primer", "What an advantage is").page
    address = page.evaluate("""performance.getEntriesByType("resource").map(
      (one) => one.name).find((name) => name.includes("/board-program/"))""")
    address = address.rsplit("/", 1)[0] + "/program.js"
    page.evaluate(MOUNT, [address, [*shown(), *own()]])
    misfits = {}
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate(
            "new Promise((done) => requestAnimationFrame(() =>"
            " requestAnimationFrame(done)))"
        )
        whole = width > 640
        misfits[width, height] = page.evaluate(MISFITS, whole)
    page.set_viewport_size({"width": 1280, "height": 800})
    assert not any(misfits.values()), misfits
