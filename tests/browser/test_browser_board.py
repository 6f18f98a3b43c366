"""The board under a mouse, a finger and keys, in Chromium."""

import random
import re
import struct
from urllib.parse import parse_qsl, urlsplit
from xml.etree import ElementTree

import pytest
from board import Board
from playwright.sync_api import expect

from gradebook.analysis.comparison import compared
from gradebook.cases.link import decode

# The report's row 10: (2 - 1) / 1, and (2 - 25.75) / 49.507.
SVG = "{http://www.w3.org/2000/svg}"
CORRECT, FAULTY = 1.0, -0.4797


def soon(board, look, right):
    """What `look()` sees is `right` within thirty seconds."""
    for _ in range(300):
        if right(look()):
            return
        board.page.wait_for_timeout(100)
    assert right(look()), look()


def agrees_with_the_link(board, name):
    """The marks are what the engines compute from the page's address, which
    follows a finished edit."""

    def seen():
        query = dict(parse_qsl(urlsplit(board.page.url).query))
        found = compared(decode(query, default=name).state)
        wanted = {}
        for side, trace in (("correct", found.correct), ("faulty", found.faulty)):
            rows = enumerate(trace.advantage.tolist())
            wanted[side] = {str(n): pytest.approx(x, abs=1e-4) for n, x in rows}
        return board.values(), wanted

    soon(board, seen, lambda both: both[0] == both[1])


def reset(board, **marks):
    board.button("Reset").click()
    board.shows(**marks)


def a_dragged_reward_moves_every_mark_and_is_one_step_of_undo(board):
    page = board.page
    board.shows(correct={10: CORRECT}, faulty={10: FAULTY, 11: 1.5})

    board.drag(10, 60, drop=False)
    held = board.cell(10).input_value()
    assert float(held) > 2
    # All of prompt C moves while the hand still holds the handle.
    page.wait_for_function(
        "([board, before]) => Number(board.querySelector("
        "'circle.correct[data-row=\"9\"]').dataset.value) < before",
        arg=[board.whole.element_handle(), -0.1],
    )
    ends = board.handle(10).get_attribute("aria-valuemax")
    page.mouse.move(*[x + y for x, y in zip(board.centre(10), (15, 0))])
    assert board.handle(10).get_attribute("aria-valuemax") == ends
    page.mouse.up()
    agrees_with_the_link(board, "partial_groups")
    texts = board.whole.locator(".row[data-row='10'] .result").all_inner_texts()
    expect(board.challenge).to_contain_text(f"not yet \u00b7 row 10: {texts[1]}")
    place = board.whole.bounding_box()

    expect(board.button("Undo")).to_be_enabled()
    board.handle(10).press("Control+z")
    expect(board.cell(10)).to_have_value("2")
    board.shows(correct={10: CORRECT}, faulty={10: FAULTY})
    expect(board.button("Undo")).to_be_disabled()
    expect(board.challenge).to_contain_text("row 10: \u22120.480")
    soon(board, board.whole.bounding_box, lambda now: now == place)
    board.handle(10).press("Control+Shift+z")
    expect(board.cell(10)).not_to_have_value("2")


def test_text_that_cannot_be_read_stays_in_its_field_and_changes_nothing(read):
    board = Board(read("partial_groups", "Partial groups").page)
    page = board.page
    board.type(10, "5")
    board.type(3, "1,500")
    said = "reward, row 3: expected a number with a decimal point, found '1,500'"
    expect(board.cell(3)).to_have_attribute("aria-invalid", "true")
    expect(board.cell(3)).to_have_attribute("title", said)
    expect(page.get_by_role("alert").filter(has_text=said)).to_be_visible()
    # Rewards 0, 1, 5: mean 2, deviation 2.6458.
    board.shows(correct={10: 3 / 2.6458})
    board.type(11, "1e2")
    page.wait_for_url("**t=**")
    page.reload()
    expect(board.cell(3)).to_have_value("1,500")
    expect(board.cell(3)).to_have_attribute("aria-invalid", "true")
    expect(board.cell(10)).to_have_value("5")
    board.cell(3).fill("-1")
    expect(board.cell(3)).not_to_have_attribute("aria-invalid", "true")
    agrees_with_the_link(board, "partial_groups")


def the_picture_is_saved_with_title_case_and_link(board):
    """Row 10's numbers, the case and the address are in the SVG; the PNG
    is the same picture at twice the size."""
    page = board.page
    board.type(11, "1")
    agrees_with_the_link(board, "partial_groups")
    files = {}
    for kind in ("SVG", "PNG"):
        with page.expect_download() as waiting:
            board.tool(f"Save as {kind}")
        assert waiting.value.suggested_filename == (f"partial_groups.{kind.lower()}")
        files[kind] = waiting.value.path().read_bytes()
    svg = ElementTree.fromstring(files["SVG"])
    words = [text.text for text in svg.iter(f"{SVG}text")]
    assert "Partial groups" in words
    assert f"Gradebook, case partial_groups: {page.url}" in words
    # Rewards 0, 1, 2 of prompt C, and faulty with the 1 of D: 1 / sqrt(2 / 3).
    assert words.count("reward 2: +1.000 → +1.225") == 1
    assert len(list(svg.iter(f"{SVG}circle"))) == 12
    twice = [2 * round(float(svg.get(side))) for side in ("width", "height")]
    assert [*struct.unpack(">II", files["PNG"][16:24])] == twice


def test_rewards_are_dragged_typed_and_saved_in_a_picture(read):
    board = Board(read("partial_groups", "Partial groups").page)
    a_dragged_reward_moves_every_mark_and_is_one_step_of_undo(board)
    reset(board, correct={10: CORRECT}, faulty={10: FAULTY})
    the_picture_is_saved_with_title_case_and_link(board)


def keys_alone_reach_and_change_everything(board):
    handle = board.handle(2)
    handle.focus()
    before = float(handle.get_attribute("aria-valuenow"))
    handle.press("ArrowRight")
    small = float(handle.get_attribute("aria-valuenow"))
    handle.press("Shift+ArrowRight")
    large = float(handle.get_attribute("aria-valuenow"))
    assert before < small < large
    assert large - small > 5 * (small - before)
    low = handle.get_attribute("aria-valuemin")
    handle.press("Home")
    expect(handle).to_have_attribute("aria-valuenow", low)
    expect(handle).to_have_attribute("role", "slider")
    expect(handle).to_have_attribute("aria-label", "Reward of row 2, prompt A")
    expect(board.handle(1)).to_have_attribute(
        "aria-valuetext", re.compile("1; advantage: correct")
    )
    handle.press("PageUp")
    expect(board.handle(1)).to_be_focused()
    board.cell(1).focus()
    board.cell(1).press("ArrowDown")
    expect(board.cell(2)).to_be_focused()

    chip = board.whole.get_by_role("button", name="token 2")
    chip.focus()
    chip.press("Space")
    expect(chip).to_have_attribute("aria-pressed", "false")
    expect(chip).to_be_focused()
    chip.press("Tab")
    expect(board.whole.get_by_role("button", name="token 3")).to_be_focused()
    board.cell(2).press("Alt+ArrowUp")
    expect(board.cell(1)).to_have_value(low)
    agrees_with_the_link(board, "rejected_rows")


def chips_are_painted_and_rows_come_and_go(board):
    page = board.page
    box = board.mask(0).bounding_box()
    middle = box["y"] + box["height"] / 2
    pitch = 15
    start = box["x"] + 10 + pitch / 2
    page.mouse.move(start, middle)
    page.mouse.down()
    page.mouse.move(start + 2 * pitch, middle, steps=6)
    page.mouse.up()
    expect(board.mask(0)).to_have_attribute(
        "aria-label", "response mask of row 0: 3 of 3 tokens unmasked"
    )
    # Now all three rows count: mean 34.333, deviation 56.871.
    board.shows(correct={0: 1.1547}, faulty={0: 1.1547})
    board.tool("Add row")
    expect(board.rows).to_have_count(4)
    board.tool("Remove row")
    expect(board.rows).to_have_count(3)
    board.button("Undo").click()
    expect(board.rows).to_have_count(4)
    board.button("Reset").click()
    expect(board.rows).to_have_count(3)
    board.shows(correct={0: 0})

    board.cell(0).focus()
    page.evaluate(
        "navigator.clipboard.writeText('7\\n8\\n9\\n10\\n')",
    )
    page.keyboard.press("Control+v")
    expect(board.rows).to_have_count(4)
    expect(board.cell(3)).to_have_value("10")
    agrees_with_the_link(board, "rejected_rows")


def after_any_edits_picture_server_and_link_agree(board):
    """None waits for the answer to the one before. The three rows of the
    case are always there, since none of the edits removes them."""
    page = board.page
    rng = random.Random(1)
    for _ in range(15):
        row = rng.randrange(3)
        act = rng.choice(["type", "drag", "key", "chip", "Add row", "Undo"])
        if act == "type":
            board.type(row, str(rng.randint(-3, 9)))
        elif act == "drag":
            board.drag(row, rng.randint(-40, 40), steps=3)
        elif act == "key":
            board.handle(row).focus()
            board.handle(row).press(rng.choice(["ArrowLeft", "ArrowUp"]))
        elif act == "chip":
            board.mask(row).click(position={"x": 17 + 15 * rng.randrange(3), "y": 16})
        elif act == "Undo":
            board.handle(row).press("Control+z")
        else:
            board.tool(act)
    page.locator("[data-test-script-state='notRunning']").wait_for()
    agrees_with_the_link(board, "rejected_rows")


def test_keys_chips_rows_and_any_edits_change_the_batch(read):
    board = Board(read("rejected_rows", "Rejected rows").page)
    keys_alone_reach_and_change_everything(board)
    reset(board, correct={0: 0}, faulty={1: -0.58612})
    chips_are_painted_and_rows_come_and_go(board)
    reset(board, correct={0: 0}, faulty={1: -0.58612})
    after_any_edits_picture_server_and_link_agree(board)


def swipe(page, mark, pixels):
    """A finger drags a mark to the right, or with a minus to the left."""
    box = mark.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = page.context.new_cdp_session(page)

    def send(kind, *points):
        said = {"type": kind, "touchPoints": [{"x": a, "y": b} for a, b in points]}
        touch.send("Input.dispatchTouchEvent", said)

    send("touchStart", (x, y))
    for step in range(1, 9):
        send("touchMove", (x + pixels * step / 8, y))
    send("touchEnd")


def test_a_finger_guesses_and_edits_on_a_narrow_screen(elsewhere, server):
    page = elsewhere(390, 844, has_touch=True, is_mobile=True).new_page()
    page.goto(f"{server.url}/partial_groups")
    board = Board(page)
    board.shows(correct={10: CORRECT})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.locator("[data-listening]").wait_for(state="attached")
    swipe(page, board.whole.get_by_role("slider", name="Your guess for row 10"), -180)
    expect(board.button("Negative")).to_have_attribute("aria-pressed", "true")
    board.button("Show what it does").click()  # a slow tap is a long press
    board.shows(faulty={10: FAULTY})
    expect(board.box).to_contain_text("\u2713 You put it beyond \u22122. Right")

    # The finger begins in the middle of the slider and goes left of it.
    slider = board.whole.get_by_role("slider", name="Reward of row 11")
    low, high = (float(slider.get_attribute(end)) for end in ("min", "max"))
    swipe(page, slider, -60)
    soon(
        board,
        lambda: float(board.cell(11).input_value()),
        lambda value: value < low + 0.4 * (high - low),
    )
    agrees_with_the_link(board, "partial_groups")

    page.goto(f"{server.url}/sandbox")
    handle = board.handle(0)
    expect(handle).to_be_visible()
    before = board.cell(0).input_value()
    swipe(page, handle, 32)
    expect(board.cell(0)).not_to_have_value(before)


@pytest.mark.long
def test_losing_the_connection_during_a_drag_loses_no_edit(read):
    reader = read("partial_groups", "Partial groups")
    page, board, sockets = reader.page, reader.board, []

    def proxy(route):
        route.connect_to_server()
        sockets.append(route)

    page.route_web_socket(lambda url: "_stcore/stream" in url, proxy)
    link = f"{reader.server.url}/partial_groups?v=1&s=partial_groups&open=1"
    page.goto(link)
    board.shows(faulty={10: FAULTY})
    board.drag(10, 30, drop=False)
    sockets[-1].close()
    x, y = board.centre(10)
    page.mouse.move(x + 20, y, steps=4)
    page.mouse.up()
    wanted = board.cell(10).input_value()
    page.wait_for_function(
        "() => document.querySelector('[data-test-connection-state=CONNECTED]')"
    )
    expect(board.cell(10)).to_have_value(wanted)
    page.wait_for_function("(text) => location.href !== text", arg=link)
    agrees_with_the_link(board, "partial_groups")
    reader.begin()  # the browser has said that it was disconnected


def test_rewards_that_differ_by_little_are_drawn_apart(read):
    board = Board(read("bf16_rewards", "bf16 rewards").page)

    def apart():
        return board.centre(3)[0] - board.centre(1)[0]

    soon(board, apart, lambda pixels: pixels > 100)
    board.type(0, "0")
    soon(board, apart, lambda pixels: pixels < 10)


def test_pieces_of_one_rollout_share_a_bracket(read):
    page = read("fan_out", "Fan-out")

    def joined(*spans):
        """The rows that each bracket spans."""
        for end, rows in zip(("first", "last"), zip(*spans)):
            row = page.board.whole.locator(f".row.piece.{end}")
            expect(row).to_have_count(len(rows))
            found = [int(one.get_attribute("data-row")) for one in row.all()]
            assert found == list(rows)

    for width in (1280, 390):
        page.page.set_viewport_size({"width": width, "height": 800})
        joined((0, 2))
    page.page.set_viewport_size({"width": 1280, "height": 800})
    page.board.type(3, "2", column="rollout")
    joined((0, 2), (3, 4))
    page.board.type(1, "2", column="rollout")
    joined((3, 4))
