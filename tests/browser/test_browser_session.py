"""A room with a lead and two learners, and the presenter view's keys."""

import re

import pytest
from conftest import Reader, Server
from playwright.sync_api import expect

CONNECTED = (
    "[data-testid='stApp'][data-test-connection-state='CONNECTED']"
    "[data-test-script-state='notRunning']"
)
HOME = "36 reported bugs in how RL trainers turn rewards into updates"
CASE = "partial_groups?v=1&s=partial_groups"


def button(page, key):
    return page.locator(f".st-key-{key} button")


def no_sideways_scroll(page):
    main = page.get_by_test_id("stMain")
    assert main.evaluate("(e) => e.scrollWidth <= e.clientWidth")


def choose(reader, choice):
    """Chooses in the box, and sends the choice."""
    reader.page.locator(".box .choice").nth(choice).click()
    reader.page.locator(".box .show").click()


@pytest.mark.long
def test_a_class_goes_on_after_its_server_was_killed(elsewhere, tmp_path):
    """The lead and two learners, one at 390 px, come back by themselves to room,
    question and vote; what is typed meanwhile counts, and a vote waits. The lead
    reveals, and takes it back."""
    server = Server(tmp_path).wait()
    lead, one, two = (Reader(elsewhere(width), server) for width in (1280, 1280, 390))
    lead.page.goto(f"{server.url}/session")
    button(lead.page, "room-open").click()
    panel = lead.keyed("room-panel")
    expect(panel.get_by_alt_text("QR code")).to_be_visible()
    code = lead.page.locator(".gb-code").inner_text().strip()
    link = panel.locator("code").first
    expect(link).to_contain_text(server.url)
    one.page.goto(link.inner_text())
    two.page.goto(f"{server.url}/session")
    two.page.get_by_label("Code", exact=True).fill(code.lower())
    button(two.page, "room-join").click()
    expect(lead.page.get_by_text("2 learners here")).to_be_visible()
    lead.page.get_by_role("link", name="Open the case").first.click()
    bar = lead.keyed("room-bar")
    choose(one, 0)
    expect(one.keyed("room-bar")).to_contain_text("You said Positive")
    choose(two, 2)
    expect(bar).to_contain_text("2 answers; 2 of 2 learners at this question")
    # The lead reads the choices, and has nothing to choose or to drag.
    expect(lead.page.locator(".box")).to_contain_text("Positive")
    expect(lead.page.locator(".box button")).to_have_count(0)
    expect(lead.page.get_by_label("Your guess for row")).to_be_hidden()

    server.process.kill()
    away = one.page.get_by_text("The server is away")
    expect(away).to_be_visible()
    one.board.type(0, "0.25")  # nobody is there to hear it
    expect(one.page.locator(".box .show")).to_be_disabled()
    server.process.wait()
    server.start()
    server.wait()
    expect(away).to_be_hidden(timeout=60_000)
    expect(one.keyed("room-bar")).to_contain_text("You said Positive")
    choose(one, 1)
    expect(one.keyed("room-bar")).to_contain_text("You said Zero")
    expect(two.keyed("room-bar")).to_contain_text("You said Negative")
    # Rewards 0.25, -0.5, 1 and -1: mean -0.0625, deviation 0.875.
    one.board.shows(correct={0: 0.3125 / 0.875})
    expect(lead.page.locator(CONNECTED)).to_be_visible(timeout=60_000)
    button(lead.page, "room-reveal").click()
    for reader in (lead, one, two):
        expect(reader.page.locator(".box .figures")).to_be_visible()
    expect(two.keyed("room-bar")).to_contain_text("yours, the answer")
    no_sideways_scroll(two.page)
    expect(bar).to_contain_text("Zero: 1")
    button(lead.page, "room-hide").click()
    choose(one, 0)
    expect(one.keyed("room-bar")).to_contain_text("You said Positive")
    server.stop()


@pytest.mark.long
def test_a_waiting_learner_asks_the_page_for_nothing_and_stays(read, elsewhere):
    """A page that was asked for by a clock could be drawn over the page that
    a learner has just gone to."""
    lead = read("session", "Session", context=elsewhere())
    button(lead.page, "room-open").click()
    code = lead.page.locator(".gb-code").inner_text().strip()
    link = lead.keyed("room-panel").locator("code").first.inner_text()
    address = f"{lead.server.url}/{CASE}"
    learner = read(link.removeprefix(f"{lead.server.url}/"), "Session", elsewhere())
    expect(learner.keyed("room-bar")).to_contain_text(f"Room {code}")
    asked, sockets = [], []

    def listen(socket):
        sockets.append(socket)
        socket.on("framesent", lambda sent: asked.append(sent))

    learner.page.on("websocket", listen)
    # Without the room in the address: the server knows the seat's room.
    learner.page.goto(address)
    expect(learner.keyed("room-bar")).to_contain_text(f"Room {code}")
    learner.settled()
    with learner.page.expect_response("**/room-news/**"):
        pass  # the page has looked once
    seen = len(asked)
    for _ in range(3):
        with learner.page.expect_response("**/room-news/**"):
            pass
    assert sockets and len(asked) == seen
    learner.page.get_by_role("navigation").get_by_role("link", name="Home").click()
    heading = learner.page.get_by_role("heading", level=1)
    expect(heading).to_have_text(HOME)
    learner.page.goto(address)
    expect(learner.keyed("room-bar")).to_contain_text(f"Room {code}")


@pytest.mark.long
def test_the_presenter_views_keys_reveal_and_walk_the_stages(elsewhere, server):
    """Space and the arrows act in the presenter view alone, and not while a
    control has the focus."""
    reader = Reader(elsewhere(), server)
    page = reader.page
    sent = []
    page.on(
        "websocket",
        lambda socket: socket.on("framesent", lambda data: sent.append(data)),
    )
    page.goto(f"{server.url}/{CASE}&present=1")
    expect(page.locator(".box .choice").first).to_be_visible(timeout=60_000)
    reader.settled()
    expect(page.get_by_test_id("stHeader")).to_be_hidden()
    page.set_viewport_size({"width": 390, "height": 800})
    no_sideways_scroll(page)
    page.set_viewport_size({"width": 1280, "height": 720})

    def told():
        """The keys that the page has told the server."""
        return set(re.findall(rb'"(?:back|on|reveal)"', b"".join(sent)))

    def nothing_is_told_by(key):
        sent.clear()
        page.keyboard.press(key)
        page.evaluate("new Promise((done) => setTimeout(done, 50))")
        assert not told()

    reader.board.handle(0).focus()
    nothing_is_told_by("Space")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Space")
    expect(page.locator(".box .figures")).to_be_visible(timeout=60_000)
    assert told() == {b'"reveal"'}
    reader.settled()
    # Box, twelve rows and the challenge are in view together.
    bottom = "(e) => e.getBoundingClientRect().bottom"
    assert reader.board.whole.locator(".challenge").evaluate(bottom) <= 720
    sent.clear()
    page.keyboard.press("ArrowRight")
    reader.settled()
    assert told() == {b'"on"'}
    button(page, "present-leave").click()
    expect(page.get_by_test_id("stHeader")).to_be_visible()
    expect(page).to_have_url(re.compile("^(?!.*present)"))
    reader.settled()
    page.evaluate("document.activeElement.blur()")
    nothing_is_told_by("ArrowRight")
    page.close()
    assert reader.complaints() == []
