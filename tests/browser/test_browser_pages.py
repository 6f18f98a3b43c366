"""Every page as a browser shows it: whole, readable and without errors, in
light and dark, at 200 % zoom and on a phone.

One visit looks for everything: axe-core's WCAG rules, text that is cut, laid
over or past the window, sideways scrolling, a request to another machine, an
error on the console.
"""

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import Reader, Tabs
from one_a_stage import BY_STAGE
from playwright.sync_api import expect

from gradebook.output.handout import handout

WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
BUG = BY_STAGE["group"]
# Pages of other stages differ by what the board draws.
OPEN = [f"{bug}?v=1&s={bug}&open=1" for bug in BY_STAGE.values()]
PRESENTED = f"{OPEN[0]}&present=1"
GAMES = [
    "mystery",
    "bug_or_not",
    "bug_or_not?v=1&seed=FIRST&round=2&a=nb",  # a report that is settled
    "bug_or_not?v=1&seed=FIRST&round=13",  # the score
]
PAGES = ["", BUG, OPEN[0], "check", "sandbox", "session"]
PAGES += ["consequences", *GAMES]
WINDOWS = {
    # 1280 x 800 at 200 % zoom has half as many CSS pixels of twice the size.
    "light": {"viewport": {"width": 1280, "height": 800}},
    "dark": {
        "viewport": {"width": 1280, "height": 800},
        "color_scheme": "dark",
    },
    "zoom": {
        "viewport": {"width": 640, "height": 400},
        "device_scale_factor": 2,
    },
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "device_scale_factor": 2,
    },
}
# ruff: noqa: E501
FAULTS = r"""
() => {
  const main = document.querySelector('[data-testid="stMain"]');
  const page = document.scrollingElement;
  const sideways = [page, main].map((e) => e.scrollWidth - e.clientWidth);
  const seen = (e) => { const s = getComputedStyle(e); return e.getClientRects().length && s.visibility !== 'hidden' && +s.opacity > 0; };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const boxes = [];
  while (walker.nextNode()) {
    const node = walker.currentNode, holder = node.parentElement;
    if (!node.data.trim() || !seen(holder)) continue;
    if (holder.closest('details:not([open]) > :not(summary), [data-testid="stSidebar"]')) continue;
    if (holder.closest('canvas, script, style, svg, [aria-hidden="true"], [data-testid="stIconMaterial"]')) continue;
    const range = document.createRange(); range.selectNodeContents(node);
    const lines = [...range.getClientRects()].filter((r) => r.width > 1 && r.height > 1);
    if (!lines.length) continue;
    let clip = null, scrolls = false;
    for (let e = holder; e && e !== main && e !== document.body; e = e.parentElement) {
      const s = getComputedStyle(e);
      if (/(auto|scroll)/.test(s.overflowX)) { scrolls = true; break; }
      if (/(hidden|clip)/.test(s.overflowX + s.overflowY)) {
        const b = e.getBoundingClientRect();
        if (b.width < 3 || b.height < 3) { scrolls = true; break; }
        for (const r of lines) if (r.right > b.right + 2 || r.left < b.left - 2 || r.bottom > b.bottom + 3 || r.top < b.top - 3) clip = e;
      }
    }
    if (clip) found.push('clipped: ' + node.data.trim().slice(0, 40));
    if (!scrolls) for (const r of lines) {
      if (r.right > innerWidth + 1 || r.left < -1) found.push('outside: ' + node.data.trim().slice(0, 40));
      boxes.push([holder, r, node.data.trim().slice(0, 30)]);
    }
  }
  for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
    const [a, r, t] = boxes[i], [b, q, u] = boxes[j];
    if (a === b || a.contains(b) || b.contains(a)) continue;
    if (!!a.closest('header') !== !!b.closest('header')) continue;
    const x = Math.min(r.right, q.right) - Math.max(r.left, q.left), y = Math.min(r.bottom, q.bottom) - Math.max(r.top, q.top);
    if (x > 3 && y > 5) found.push('overlap: ' + t + ' / ' + u);
  }
  const ellipsis = [...document.querySelectorAll('body *')].filter((e) => { const s = getComputedStyle(e); return s.textOverflow === 'ellipsis' && s.overflow !== 'visible' && e.scrollWidth > e.clientWidth + 1 && seen(e) && !e.closest('[data-testid="stSidebar"]'); }).map((e) => 'ellipsis: ' + (e.innerText||'').slice(0, 40));
  const fields = [...document.querySelectorAll('input[type=text], input[type=number]')].filter((e) => seen(e) && e.scrollWidth > e.clientWidth + 1).map((e) => `field: ${e.getAttribute('aria-label')} ${e.value} ${e.clientWidth}`);
  return { sideways, found: [...new Set([...found, ...ellipsis, ...fields])].slice(0, 12) };
}
"""
"""Lines of text past the window, cut by a box that does not scroll, or over
one another; and whether the document scrolls sideways."""


NONE = {"sideways": [0, 0], "found": []}


@pytest.fixture(scope="module")
def window(request, chromium, server, tabs):
    """A window of WINDOWS; the light one unless a test asks for others."""
    name = getattr(request, "param", "light")
    if name == "light":
        yield tabs
        return
    context = chromium.new_context(**WINDOWS[name], reduced_motion="reduce")
    yield Tabs(context, server)
    context.close()


@pytest.fixture
def reader(window):
    reader = window.take()
    yield reader
    window.leave(reader)


def visit(reader, path):
    reader.page.goto(f"{reader.server.url}/{path}")
    heading = reader.page.get_by_role("heading", level=1)
    first = reader.page.locator(".board") if path == PRESENTED else heading
    expect(first).to_be_visible(timeout=60_000)
    drawn(reader)


def drawn(reader):
    """Until the page is as high as it gets: a first visit to a server is
    idle between its runs, and pictures take their width late."""
    main = reader.page.get_by_test_id("stMain")
    heights = []
    while len(heights) < 3 or len(set(heights[-3:])) > 1:
        reader.settled()
        reader.page.wait_for_timeout(300)
        heights.append(main.evaluate("(e) => e.scrollHeight"))
        assert len(heights) < 50, "the page never comes to rest"


def faults(reader):
    return reader.page.evaluate(FAULTS)


# The list that Streamlit puts into the menu of a narrow window breaks a rule.
OURS = {"exclude": [["[data-testid='stSidebar']"]]}


def violations(reader):
    options = {"runOnly": WCAG, "resultTypes": ["violations"]}
    found = Axe().run(reader.page, context=OURS, options=options).response
    return [f"{v['id']}: {v['nodes'][0]['html'][:120]}" for v in found["violations"]]


# On a phone a page of each stage is looked at; test_browser_size.py answers each bug
# at this window and on a desk.
OPENED = {"light": OPEN[1:4], "phone": OPEN[1:]}
# Four pages; -m long looks at all pages in all windows.
VISITS = [
    pytest.param(
        window,
        path,
        marks=() if path in OPEN[:4] and window == "light" else pytest.mark.long,
    )
    for window in WINDOWS
    for path in [*PAGES, PRESENTED, *OPENED.get(window, ())]
]
# Pages of other stages have no elements of another kind: rules of WCAG are
# tried on them under long, in the other windows.
RULED = {BY_STAGE[stage] for stage in ("group", "kl", "score")}

# Brackets are drawn once if both engines compare the same rows.
DRAWN = {
    "partial_groups": {"both": 2, "correct": 2, "faulty": 1},
    "swapped_scale": {"both": 2, "correct": 0, "faulty": 0},
    "double_normalization": {"both": 1, "correct": 0, "faulty": 0},
}


def the_cause_is_drawn(board, name):
    """Brackets, bars or arrows, by the stage of the bug."""
    under, legend = board.locator(".under"), board.locator(".legend")
    for kind, count in DRAWN[name].items():
        expect(under.locator(f".bracket.{kind}")).to_have_count(count)
    # On a phone there is no reward axis, so the legend leaves brackets out.
    two = 0 if "narrow" in board.get_attribute("class") else DRAWN[name]["faulty"]
    expect(legend.get_by_text("the same, faulty")).to_have_count(two)
    bars = 2 if name == "swapped_scale" else 0
    arrows = 2 if name == "double_normalization" else 0
    drawn_arrows = board.locator(".over .arrows")
    for kind in ("correct", "faulty"):
        expect(under.locator(f".divisor.{kind}")).to_have_count(bars)
    expect(drawn_arrows.locator(".correct[d^='M']")).to_have_count(0)
    expect(drawn_arrows.locator(".faulty[d^='M']")).to_have_count(arrows)


phone_too = pytest.mark.parametrize(
    "window", ["light", "phone"], indirect=True, scope="module"
)


@pytest.mark.parametrize(
    ("window", "path"), VISITS, indirect=["window"], scope="module"
)
def test_a_page_is_whole_and_violates_no_rule(reader, path, request):
    visit(reader, path)
    assert faults(reader) == NONE
    name = path.partition("?")[0]
    if name in RULED or request.config.option.markexpr == "long":
        assert violations(reader) == []
    if path in OPEN and name in DRAWN:
        the_cause_is_drawn(reader.board.whole, name)


@pytest.mark.long
@pytest.mark.parametrize("window", [*WINDOWS], indirect=True, scope="module")
@pytest.mark.parametrize(
    "path, button, shows",
    [
        ("mystery?v=1&seed=seed1", "Give up", "You gave up"),
        ("check", "A faulty run: lost rollouts", "Suspect: Partial groups"),
        ("session", "Open a room", "Close the room and delete its votes"),
    ],
)
def test_what_a_button_opens_is_whole_and_violates_no_rule(reader, path, button, shows):
    visit(reader, path)
    reader.page.get_by_role("button", name=button, exact=True).click()
    # A verdict takes its time on a busy machine.
    seen = reader.page.get_by_text(shows).locator("visible=true").first
    seen.wait_for(timeout=120_000)
    drawn(reader)
    assert faults(reader) == NONE
    assert violations(reader) == []


@pytest.mark.long
def test_a_bad_cell_is_no_violation(reader):
    visit(reader, f"{BUG}?v=1&s={BUG}&open=1")
    reader.board.type(1, "x")
    reader.settled()
    assert violations(reader) == []


@pytest.mark.long
@phone_too
def test_everything_folded_is_whole_when_it_is_open(reader):
    visit(reader, OPEN[0])
    for link in ("Am I affected?", "Take it home", "Go deeper"):
        reader.page.get_by_role("button", name=link, exact=True).click()
        drawn(reader)
        heads = reader.page.locator("[data-testid=stExpander] summary")
        for at in range(heads.count()):
            heads.nth(at).click()
            drawn(reader)
        assert faults(reader) == NONE, link
        assert violations(reader) == [], link


@pytest.mark.long
@phone_too
def test_a_handout_fits_the_window(reader):
    reader.page.set_content(handout(BUG))
    wide = "document.documentElement.scrollWidth <= innerWidth"
    assert reader.page.evaluate(wide)


def test_the_browser_tests_notice_errors_and_requests_to_other_servers(desktop, server):
    reader = Reader(desktop, server)
    visit(reader, "")
    assert reader.complaints() == []
    reader.page.evaluate(
        """() => {
          const add = (text, style) => {
            const box = document.createElement('div');
            box.textContent = text;
            box.style = style;
            document.querySelector('h1').after(box);
          };
          add('a sentence', 'position: absolute');
          add('another sentence', 'position: absolute');
          add('a sentence that is cut off',
            'width: 40px; overflow: hidden; white-space: nowrap');
          add('', 'width: 2000px; height: 9px');
        }"""
    )
    seen = faults(reader)
    assert max(seen["sideways"]) > 0
    for kind in ("overlap", "clipped"):
        assert any(said.startswith(kind) for said in seen["found"])
    reader.page.evaluate("document.body.append(document.createElement('img'))")
    assert any("image-alt" in said for said in violations(reader))
    away = "https://example.invalid/"
    reader.page.route(away, lambda route: route.abort())
    reader.page.evaluate("u => fetch(u).catch(() => 0)", away)
    reader.page.evaluate("console.error('something went wrong')")
    reader.page.close()
    assert any(away in said for said in reader.complaints())
    assert "something went wrong" in reader.complaints()
