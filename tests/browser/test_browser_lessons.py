"""The lesson as a person takes it: predict, read, try, go back, take home."""

import re

import pytest
from playwright.sync_api import expect

import gradebook

BUG = "partial_groups"
HOME = "36 reported bugs in how RL trainers turn rewards into updates"
TITLE = gradebook.load(BUG).title
TASKS = gradebook.load(BUG).challenges


FOCUSED = """() => {
  let at = document.activeElement;
  while (at.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at.innerText || "";
}"""


def tab_to(page, name, most=90):
    """Tabs until a button with this text has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        text = page.evaluate(FOCUSED)
        if text.strip() == name:
            return
    raise AssertionError(f"{name} is not reached by Tab")


def test_a_lesson_by_keyboard_from_the_question_to_the_test(read):
    """TRUTH: row 10 has +1.000, faulty -0.480; with a reward of 0 in row 11
    the faulty engine gives it (2 - 0.75) / 0.957427 = +1.30557."""
    reader = read(BUG, TITLE, skip=False)
    page = reader.page
    expect(reader.board.box).to_contain_text("is its advantage positive, zero")
    expect(page.get_by_text("The rule.")).to_have_count(0)
    # The page was sent no faulty number.
    assert reader.board.values()["faulty"] == {}
    sent = b"".join(reader.received)
    assert BUG.encode() in sent
    secrets = ["\u22120.480".encode(), b"\\u22120.480", b"-0.4797", b"25.75"]
    assert not [secret for secret in secrets if secret in sent]
    tab_to(page, "Positive")
    page.keyboard.press("Enter")
    tab_to(page, "Show what it does")
    page.keyboard.press("Enter")
    verdict = reader.board.box.locator(".heir")
    expect(verdict).to_contain_text("\u22120.480")
    expect(verdict).to_be_focused()
    reader.board.shows(correct={10: 1.0}, faulty={10: -0.48})
    assert b"-0.4797" in b"".join(reader.received)
    # A challenge, by its solution, which is not called solved; the keys undo
    # and redo it.
    task = reader.board.challenge
    expect(task).to_contain_text(TASKS[0].goal)
    tab_to(page, "Hint")
    page.keyboard.press("Space")
    expect(task).to_contain_text(TASKS[0].hint)
    tab_to(page, "Show a solution")
    page.keyboard.press("Space")
    expect(task.get_by_role("status")).to_contain_text("shown")
    expect(task).to_contain_text(TASKS[0].insight)
    before = reader.board.values()["faulty"]["10"]
    assert before == pytest.approx(1.30557, abs=1e-4)
    reader.settled()
    page.keyboard.press("Control+z")
    reader.board.shows(faulty={10: -0.48})
    reader.settled()
    page.keyboard.press("Control+Shift+Z")
    reader.board.shows(faulty={10: before})
    reader.settled()
    # The test goes home.
    tab_to(page, "Take it home")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="pytest file")).to_be_visible()
    reader.settled()
    tab_to(page, "pytest file")
    with page.expect_download() as waiting:
        page.keyboard.press("Space")
    assert "def test_" in waiting.value.path().read_text("utf-8")


POINTED = ".board :is(.row, .stage)[data-pointed]"


def test_a_text_points_at_the_board_and_a_link_is_copied(read):
    reader = read("partial_groups", "Partial groups")
    page, board = reader.page, reader.board
    board.tool("Copy link")
    expect(board.whole.locator(".status")).to_have_text("Link copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.locator(".gb-point", has_text="row 11").first.hover()
    expect(page.locator(POINTED)).to_have_count(1)
    expect(page.locator(POINTED)).to_have_attribute("data-row", "11")
    # A formula's baseline: its stage, and the rows of its mean.
    page.locator(".gb-formula .gb-point", has_text="mean of rows 8, 9 and 10").focus()
    page.mouse.move(0, 0)
    expect(page.locator(POINTED)).to_have_count(4)
    expect(board.stage("baseline")).to_have_attribute("data-pointed", "")
    page.keyboard.press("Enter")
    expect(board.rows.nth(8)).to_be_in_viewport()
    page.locator(".gb-point").first.focus()
    page.mouse.click(1, 1)
    expect(page.locator(POINTED)).to_have_count(0)


def test_what_is_opened_follows_edits_and_a_link_restores_them(read):
    """TRUTH: row 11's reward moves row 10 by -1.785 in the faulty engine."""
    reader = read(f"{BUG}?v=1&s={BUG}&open=1", TITLE)
    page = reader.page
    reader.board.stage("baseline").click()
    expect(reader.keyed(f"plot-{BUG}").locator("svg")).to_be_visible()
    reader.settled()
    before = page.url
    reader.board.cell(11).fill("0")  # and the focus stays there
    reader.board.shows(faulty={10: 1.30557})
    expect(reader.board.stage("baseline")).to_contain_text("0.750")
    expect(reader.keyed("opened-stage")).to_contain_text("0.750")
    page.wait_for_url(lambda url: url != before)
    other = read(page.url.split("/")[-1], TITLE)
    other.board.shows(faulty={10: 1.30557})
    other.board.button("Undo").click()
    other.board.shows(faulty={10: -0.48})
    other.settled()

    # What is folded is worked out when it is opened.
    other.page.get_by_role("button", name="Go deeper").click()
    maps = other.keyed(f"map-{BUG}").locator(".js-plotly-plot")
    expect(maps).to_have_count(0)
    other.page.get_by_text("Which row's reward moves which row's advantage").click()
    expect(maps).to_be_visible()


def test_one_press_of_back_returns_from_an_answer_and_from_a_game(read):
    reader = read("", HOME)
    page = reader.page
    heading = page.get_by_role("heading", level=1)
    page.get_by_role("link", name="Predict the first bug").click()
    expect(heading).to_have_text(TITLE)
    reader.settled()
    reader.board.box.get_by_role("button", name="Skip").click()
    reader.board.shows(faulty={10: -0.48})
    reader.settled()
    page.go_back()
    expect(heading).to_have_text(HOME)
    reader.settled()
    page.get_by_role("link", name="Bug or not?").first.click()
    expect(page).to_have_url(re.compile("seed="))
    reader.settled()
    page.go_back()
    expect(heading).to_have_text(HOME)


def test_home_leads_to_a_bug_and_remembers_it(read):
    page = read("", HOME).page
    first, whole = (
        page.locator(part).bounding_box()
        for part in (".st-key-first-line", ".gb-index")
    )
    assert first["y"] + first["height"] <= 800 <= whole["y"]  # the map comes second,
    assert whole["height"] <= 800 - 60  # in one look below Streamlit's header
    tile = page.locator(".gb-index .tiles a[data-name=fan_out]")
    expect(tile).to_have_class("covered")
    page.get_by_role("searchbox").fill("slime")
    expect(page.locator(".gb-index .tiles a[data-name=zero_std_kl]")).to_be_hidden()
    page.get_by_label("by rule").check()
    expect(tile).to_be_hidden()  # its view by rule takes the map's place
    expect(page.locator(".rules a[data-name=fan_out]")).to_be_visible()
    page.get_by_label("by stage").check()
    tile.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Fan-out")
    page.get_by_role("button", name="Skip").click()
    expect(page.locator(".st-key-the-end")).to_be_visible()
    page.reload()  # another session of the same browser
    expect(page.locator(".st-key-the-end")).to_be_visible(timeout=60_000)
    page.get_by_role("link", name="Home", exact=True).click()
    expect(tile).to_have_class("open")


def test_a_drag_on_home_asks_the_server_for_nothing(read):
    reader = read("", HOME)
    page, board = reader.page, reader.board
    hand = page.get_by_role("slider", name="Reward of row 3")
    rows, policies = (
        page.locator(".result-head").first,
        page.locator(".result-head").last,
    )
    expect(hand).to_have_attribute("aria-valuenow", "1.1")
    expect(policies).to_contain_text("0.001")  # of 256 sums, at 200 updates
    expect(rows).to_contain_text("pushes them down")
    sent = []
    page.on("request", lambda request: sent.append(request.url))
    hand.press("ArrowLeft")
    expect(rows).to_contain_text("leaves them alone")
    hand.press("ArrowLeft")
    expect(hand).to_have_attribute("aria-valuenow", "0.9")
    expect(policies).to_contain_text("0.94")
    expect(rows).to_contain_text("pushes them up")
    board.shows(faulty={0: 0.5, 1: 0.5, 2: 0.5})
    # A hand moves it from stop to stop, as far as the last.
    board.drag(3, 400)
    expect(hand).to_have_attribute("aria-valuenow", "2")
    board.shows(faulty={0: -0.5, 1: -0.5, 2: -0.5})
    assert sent == []
    # Nothing else on this board can be edited.
    expect(board.cell(0)).to_be_disabled()
    expect(board.handle(0)).to_have_attribute("tabindex", "-1")


@pytest.mark.long
def test_a_checkpoint_comes_into_view_as_a_whole(read, elsewhere, server):
    known = ("partial_groups", "double_normalization", "no_eos_outliers")
    progress = "|".join(f"{bug}:0:::" for bug in known)
    window = elsewhere(1280, 800)
    window.add_cookies([{"name": "gradebook", "value": progress, "url": server.url}])
    title = gradebook.load(known[-1]).title
    page = read(known[-1], title, context=window, skip=False).page
    page.get_by_role("button", name="Checkpoint after 3 bugs").click()
    heading = page.get_by_text("Checkpoint: which of the 3 bugs")
    choice = page.get_by_role("button", name="None: these numbers are correct")
    for part in (heading, choice):
        expect(part).to_be_in_viewport(ratio=1)
    # On a phone the table fits.
    page.set_viewport_size({"width": 390, "height": 844})
    batch = page.locator(".st-key-unnamed-end .gb").first
    assert batch.evaluate("(e) => e.scrollWidth <= e.clientWidth")
