"""Edits with keyboard and mouse, and the numbers that follow."""

import pytest
from conftest import Reader
from playwright.sync_api import expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

PLACE = """([key, name, row]) => {
  const chart = document.querySelector(`.st-key-${key} .js-plotly-plot`);
  if (!chart?._fullData) return null;
  const [trace] = chart._fullData.filter((t) => t.name === name);
  const at = trace.customdata.findIndex(([r]) => r === row);
  const { xaxis, yaxis } = chart._fullLayout;
  const box = chart.getBoundingClientRect();
  return [
    box.x + xaxis._offset + xaxis.l2p(trace.x[at]),
    box.y + yaxis._offset + yaxis.l2p(trace.y[at]),
  ];
}"""
# Rows 8 to 11 with row 11 at 0: 0 1 2 0, mean 0.75, std 0.957427 + 1e-5.
AFTER = {8: -0.78334, 9: 0.26111, 10: 1.30557, 11: -0.78334}


def report(read):
    """The main case of partial groups, with its numbers on the screen."""
    reader = read("partial_groups", "Partial groups")
    reader.marks("partial_groups", correct={10: 1}, faulty={10: -0.47973})
    return reader


def alert(reader):
    return reader.page.get_by_role("alert")


def click_mark(reader, case, name, row):
    found = reader.page.wait_for_function(
        PLACE, arg=[f"picture-{case}", name, row]
    )
    x, y = found.json_value()
    reader.page.mouse.click(x, y)


def switch(reader, title):
    """To another page, by the navigation."""
    reader.page.get_by_role("button", name="The bugs").click()
    reader.page.get_by_role("menuitem", name=title).click()
    heading = reader.page.get_by_role("heading", level=1)
    expect(heading).to_have_text(title)
    reader.settled()


def case(reader, name):
    reader.page.get_by_role("radio", name=name).click()
    reader.settled()


def test_a_reward_in_the_table(read):
    reader = report(read)
    reader.grid.write(11, "reward", "0")
    reader.marks("partial_groups", correct={10: 1, 11: 0}, faulty=AFTER)
    expect(reader.grid.at(10, "faulty")).to_have_text("+1.306")


def test_the_first_keys_typed_into_the_table_are_not_lost(read):
    reader = report(read)
    grid = reader.grid
    grid.type(11, "reward", "12.75")
    expect(grid.at(11, "reward")).to_have_text("12.75")
    # 0 1 2 12.75: mean 3.9375, squares 105.546875, std 5.931466.
    reader.marks("partial_groups", faulty={11: 1.48572, 10: -0.32665})


def test_a_reward_in_the_widget(read):
    reader = report(read)
    row = reader.keyed("row-partial_groups").get_by_role("spinbutton")
    row.fill("11")
    row.press("Enter")
    reward = reader.keyed("reward-partial_groups").get_by_role("textbox")
    expect(reward).to_have_value("100")
    reader.fill("reward-partial_groups", "0")
    reader.marks("partial_groups", faulty=AFTER)
    expect(reader.grid.at(11, "reward")).to_have_text("0")


def drawn(frame):
    """What the browser is told to draw: an element's kind, or "" for the
    rest of a run's messages; "address" for the page's own."""
    told = ForwardMsg.FromString(frame)
    if told.WhichOneof("type") == "page_info_changed":
        return "address"
    if told.WhichOneof("type") != "delta":
        return ""
    return told.delta.new_element.WhichOneof("type") or ""


def test_an_edit_sends_its_picture_before_all_else(desktop, server):
    reader = Reader(desktop, server)
    sent = []

    def listen(socket):
        socket.on("framereceived", lambda frame: sent.append(frame))

    reader.page.on("websocket", listen)
    reader.open("partial_groups", "Partial groups")
    sent.clear()
    reader.grid.write(11, "reward", "0")
    reader.marks("partial_groups", faulty=AFTER)
    reader.settled()
    order = [kind for kind in map(drawn, sent) if kind]
    assert order[0] == "plotly_chart"
    later = {"markdown", "dataframe", "text_input", "address"}
    assert later <= set(order[1:])
    reader.page.close()
    assert reader.complaints() == []


FRAMES = """() => {
  const drawn = (plot) => plot.querySelector('.scatterlayer .point') &&
    plot.getBoundingClientRect().height > 50 &&
    getComputedStyle(plot).visibility === 'visible';
  window.gbFrames = [];
  const look = () => {
    const plots = document.querySelectorAll('.st-key-fresh .js-plotly-plot');
    gbFrames.push([...plots].some(drawn));
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


@pytest.mark.parametrize(
    "path, title, case",
    [
        ("partial_groups", "Partial groups", "partial_groups"),
        ("sandbox?v=1&s=sandbox-partial_groups", "Sandbox", None),
    ],
)
def test_a_picture_stands_in_every_frame_of_an_edit(read, path, title, case):
    reader = read(path, title)
    field = reader.keyed(f"reward-{case or 'sandbox-partial_groups'}")
    field.scroll_into_view_if_needed()
    reader.page.evaluate(FRAMES)
    for reward in ("3", "4", "5", "6"):
        field.get_by_role("textbox").fill(reward)
        field.get_by_role("textbox").press("Enter")
        reader.page.wait_for_timeout(500)
        reader.settled()
    frames = reader.page.evaluate("gbFrames")
    assert len(frames) > 20 and frames.count(False) == 0


def test_edits_one_after_another_all_stay(read):
    reader = report(read)
    for row, reward in ((0, "7"), (3, "0.25"), (11, "0")):
        reader.grid.write(row, "reward", reward)
        expect(reader.grid.at(row, "reward")).to_have_text(reward)
    reader.marks("partial_groups", faulty=AFTER)
    for row, reward in ((0, "7"), (3, "0.25"), (11, "0"), (10, "2")):
        expect(reader.grid.at(row, "reward")).to_have_text(reward)


def test_a_token_of_the_mask_in_the_table(read):
    reader = read("rejected_rows", "Rejected rows")
    reader.marks("rejected_rows", correct={2: 0.70711})
    reader.grid.toggle(0, "t2")
    # Row 0 is back: mean 103 / 3, std 56.8712.
    every = {0: 1.15466, 1: -0.58612, 2: -0.56854}
    reader.marks("rejected_rows", correct=every, faulty=every)
    reader.grid.toggle(0, "t2")
    reader.marks("rejected_rows", correct={0: 0, 2: 0.70711})


def test_a_token_flipped_back_at_once_is_as_it_was(read):
    """The second flip comes before the answer to the first."""
    reader = read("rejected_rows", "Rejected rows")
    reader.marks("rejected_rows", correct={0: 0, 2: 0.70711})
    reader.grid.toggle(0, "t2")
    reader.page.wait_for_timeout(170)  # the table waits 150 ms
    reader.page.keyboard.press("Space")
    reader.page.wait_for_timeout(1500)  # any late answer
    reader.marks("rejected_rows", correct={0: 0, 2: 0.70711})


def test_a_token_of_the_mask_by_its_pill(read):
    reader = read("rejected_rows", "Rejected rows")
    click_mark(reader, "rejected_rows", "correct", 0)
    pills = reader.page.get_by_role("toolbar", name="mask of row 0")
    pills.get_by_role("button", name="t2").click()
    every = {0: 1.15466, 1: -0.58612, 2: -0.56854}
    reader.marks("rejected_rows", correct=every, faulty=every)


def test_eos_in_the_table(read):
    reader = read("no_eos_outliers", "No-EOS outliers")
    reader.marks("no_eos_outliers", correct={0: 0}, faulty={0: -49.5})
    reader.grid.toggle(1, "EOS")
    both = {0: -49.5, 1: 49.5}
    reader.marks("no_eos_outliers", correct=both, faulty=both)


def test_a_click_on_a_mark_selects_its_row(read):
    reader = report(read)
    row = reader.keyed("row-partial_groups").get_by_role("spinbutton")
    for name, wanted in (("correct", 8), ("faulty", 11)):
        click_mark(reader, "partial_groups", name, wanted)
        expect(row).to_have_value(str(wanted))
        expect(reader.grid.at(wanted, "row")).to_have_text(f"\u25b8 {wanted}")
        why = reader.page.get_by_role("heading", name=f"Why: row {wanted}")
        expect(why).to_be_visible()


def test_an_impossible_edit_is_a_message_and_the_picture_goes_stale(read):
    reader = report(read)
    for typed, message in (
        ("abc", "expected a number, found 'abc'"),
        ("1,5", "expected a number with a decimal point, found '1,5'"),
        ("1e400", "expected a number below 1.8e308, found '1e400'"),
        ("", "expected a number, found an empty cell"),
    ):
        reader.grid.write(11, "reward", typed)
        expect(alert(reader)).to_have_text(f"reward, row 11: {message}")
        expect(reader.grid.at(11, "reward")).to_have_text(typed)
    expect(reader.page.get_by_text("Stale")).to_be_visible()
    reader.marks("partial_groups", faulty={10: -0.47973})
    reader.grid.write(11, "reward", "0")
    expect(alert(reader)).to_have_count(0)
    expect(reader.page.get_by_text("Stale")).to_have_count(0)
    reader.marks("partial_groups", faulty=AFTER)


def test_an_impossible_edit_in_the_widget(read):
    reader = report(read)
    reader.fill("reward-partial_groups", "1,5")
    expect(alert(reader)).to_contain_text("reward, row 10: expected a number")
    reward = reader.keyed("reward-partial_groups").get_by_role("textbox")
    expect(reward).to_have_value("1,5")
    expect(reader.grid.at(10, "reward")).to_have_text("1,5")
    reader.fill("reward-partial_groups", "2")
    expect(alert(reader)).to_have_count(0)


def test_the_delete_key_leaves_an_empty_cell_that_is_named(read):
    reader = report(read)
    reader.grid.clear(11, "reward")
    expect(alert(reader)).to_have_text(
        "reward, row 11: expected a number, found an empty cell"
    )


def test_cells_copied_from_a_spreadsheet_go_into_the_table(read):
    reader = report(read)
    reader.grid.paste(10, "prompt", "D\t1\nD\t3")
    # D has two rows, 1 and 3: mean 2, std sqrt(2). C has 0 and 1.
    reader.marks(
        "partial_groups",
        correct={8: -0.7071, 9: 0.7071, 10: -0.7071, 11: 0.7071},
    )
    expect(reader.grid.at(10, "prompt")).to_have_text("D")


def test_a_pasted_block_replaces_the_rows(read):
    reader = report(read)
    reader.page.get_by_role("button", name="Paste rows").click()
    block = reader.page.get_by_role("textbox", name="Block")
    block.fill("A\t4\nB\t1\nA\t2\nB\t3")
    block.press("Control+Enter")
    reader.page.get_by_role("button", name="Replace the rows").click()
    reader.marks(
        "partial_groups",
        correct={0: 0.7071, 1: -0.7071, 2: -0.7071, 3: 0.7071},
        faulty={0: 1.16189, 1: -1.16189, 2: -0.3873, 3: 0.3873},
    )
    reader.page.keyboard.press("Escape")
    expect(reader.grid.at(3, "reward")).to_have_text("3")
    expect(reader.grid.cell(4, 0)).to_have_count(0)


def test_rows_come_and_go_by_the_buttons(read):
    reader = report(read)
    reader.page.get_by_role("button", name="Add row").click()
    expect(reader.grid.at(11, "row")).to_have_text("\u25b8 11")
    reader.grid.write(11, "reward", "5")
    expect(reader.grid.at(12, "reward")).to_have_text("100")
    # C has 0 1 2 5: mean 2, squares 14, std 2.160247.
    reader.marks("partial_groups", correct={10: 0, 11: 1.38872, 12: 0})
    reader.page.get_by_role("button", name="Remove row").click()
    reader.marks("partial_groups", correct={10: 1}, faulty={10: -0.47973})
    # That leaves the case as it was: nothing to reset.
    reset = reader.keyed("reset-partial_groups").get_by_role("button")
    expect(reset).to_be_disabled()


def test_reset_brings_the_case_back(read):
    reader = report(read)
    reader.grid.write(11, "reward", "0")
    reader.marks("partial_groups", faulty=AFTER)
    reader.keyed("reset-partial_groups").get_by_role("button").click()
    reader.marks("partial_groups", faulty={10: -0.47973})
    expect(reader.grid.at(11, "reward")).to_have_text("100")


def test_edits_survive_a_switch_of_case_and_of_page(read):
    reader = report(read)
    reader.grid.write(11, "reward", "0")
    reader.marks("partial_groups", faulty=AFTER)
    case(reader, "A short tail explodes")
    reader.marks("partial_groups-tail", faulty={10: 200000})
    case(reader, "The report")
    reader.marks("partial_groups", faulty=AFTER)
    switch(reader, "Zero-std KL")
    switch(reader, "Partial groups")
    reader.marks("partial_groups", faulty=AFTER)
    expect(reader.grid.at(11, "reward")).to_have_text("0")


def test_a_page_chosen_right_after_an_edit_opens(read):
    """The edit's picture comes first, the whole page a moment later: what
    is clicked in between counts."""
    reader = report(read)
    heading = reader.page.get_by_role("heading", level=1)
    for value, pause in (("5", 40), ("6", 80), ("7", 120)):
        box = reader.keyed("reward-partial_groups").get_by_role("textbox")
        box.fill(value)
        box.press("Enter")
        reader.page.wait_for_timeout(pause)
        reader.page.get_by_role("link", name="Home", exact=True).click()
        expect(heading).to_have_text("Gradebook")
        reader.settled()
        expect(heading).to_have_text("Gradebook")
        switch(reader, "Partial groups")
        expect(reader.grid.at(10, "reward")).to_have_text(value)


def test_cases_of_one_shape_do_not_share_edits(read):
    reader = read("rejected_rows", "Rejected rows")
    reader.grid.write(1, "reward", "55")
    expect(reader.grid.at(1, "reward")).to_have_text("55")
    case(reader, "A rejected reward of 0 leaks too")
    reader.marks("rejected_rows-zero_reward", faulty={1: 0, 2: 1})
    for row, reward in enumerate("012"):
        expect(reader.grid.at(row, "reward")).to_have_text(reward)
    case(reader, "The report")
    expect(reader.grid.at(1, "reward")).to_have_text("55")


def test_a_setting_acts_at_once(read):
    reader = report(read)
    reader.fill("set-eps-partial_groups", "1")
    # C: 1 / (1 + 1). Faulty: -23.75 / 50.506734.
    reader.marks("partial_groups", correct={10: 0.5}, faulty={10: -0.47024})
    reader.fill("set-eps-partial_groups", "abc")
    expect(alert(reader)).to_have_text("eps: expected a number, found 'abc'")


def test_one_padding_column_changes_the_result(read):
    reader = read("no_eos_outliers", "No-EOS outliers")
    case(reader, "The longest row is flagged")
    name = "no_eos_outliers-longest"
    reader.marks(name, correct={0: -1, 1: 0}, faulty={0: -0.3333, 1: 0})
    width = reader.page.get_by_role("spinbutton", name="Padded width")
    width.fill("5")
    width.press("Enter")
    both = {0: -0.3333, 1: -1.3333, 2: 1.6667}
    reader.marks(name, correct=both, faulty=both)
    expect(reader.grid.at(1, "t5")).to_be_attached()


@pytest.mark.parametrize("pause", [0, 30, 100])
def test_stepping_quickly_through_the_rows_edits_none(read, pause):
    """A message that was sent before the browser had seen the answer to the
    one before says of every field what it showed then: for another row."""
    reader = report(read)
    before = [reader.grid.at(r, "reward").inner_text() for r in range(12)]
    for name in ("Down", "Up"):
        reader.page.evaluate(
            """async ([name, pause]) => {
              for (let i = 0; i < 6; i++) {
                document.querySelector(
                  '[class*=st-key-row-partial_groups__at__] '
                  + `[data-testid=stNumberInputStep${name}]`).click();
                await new Promise(done => setTimeout(done, pause));
              }
            }""",
            [name, pause],
        )
    reader.page.wait_for_timeout(1500)  # any late answer
    for r, text in enumerate(before):
        expect(reader.grid.at(r, "reward")).to_have_text(text)
    undo = reader.keyed("undo-partial_groups").get_by_role("button")
    expect(undo).to_be_disabled()
    row = reader.page.get_by_role("spinbutton", name="Row", exact=True)
    expect(row).to_have_value("10")


@pytest.mark.parametrize("pause", [0, 60, 250])
def test_what_is_typed_while_an_answer_comes_stays(read, pause):
    reader = report(read)
    box = reader.keyed("reward-partial_groups").get_by_role("textbox")
    box.fill("5")
    box.press("Enter")
    reader.page.wait_for_timeout(pause)
    box.fill("5.25")
    reader.page.wait_for_timeout(1500)  # any late answer
    expect(box).to_have_value("5.25")
    box.press("Enter")
    expect(reader.grid.at(10, "reward")).to_have_text("5.25")


@pytest.mark.parametrize("pause", [80, 100])
def test_a_column_typed_quickly_is_all_there(read, pause):
    """Digit, Enter, digit, Enter: each edit draws the page while the next
    ones are typed."""
    reader = report(read)
    typed = [str((7 * row + 1) % 9 + 1) for row in range(12)]
    reader.grid.select(0, "reward")
    for digit in typed:
        for key in (digit, "Enter"):
            reader.page.keyboard.press(key)
            reader.page.wait_for_timeout(pause)
    for row, digit in enumerate(typed):
        expect(reader.grid.at(row, "reward")).to_have_text(digit)
