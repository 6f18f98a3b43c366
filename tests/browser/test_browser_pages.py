"""Every page as a browser shows it: in place, on this machine, readable."""

import re

import pytest
from conftest import Reader
from playwright.sync_api import expect

import gradebook

TITLES = {bug: gradebook.load(bug).title for bug in gradebook.BUGS}
PAGES = {"": "Gradebook", **TITLES}
OVERFLOW = """() => {
  const inside = document.querySelector('[data-testid="stMain"]');
  const page = document.scrollingElement;
  return [page, inside].map((e) => e.scrollWidth - e.clientWidth);
}"""
COLOURS = """(element) => {
  const seen = (e) => getComputedStyle(e).backgroundColor;
  let back = element;
  while (/, 0\\)$/.test(seen(back)) && back.parentElement) {
    back = back.parentElement;
  }
  const style = getComputedStyle(element);
  const svg = element.namespaceURI.endsWith('svg');
  return [svg ? style.fill : style.color, seen(back)];
}"""


@pytest.fixture(scope="module")
def phone(chromium):
    context = chromium.new_context(
        viewport={"width": 390, "height": 844}, reduced_motion="reduce"
    )
    yield context
    context.close()


@pytest.fixture(params=["light", "dark"])
def themed(request, chromium):
    """(context, scheme) for each of the two colour schemes."""
    context = chromium.new_context(
        viewport={"width": 1280, "height": 800}, color_scheme=request.param
    )
    yield context, request.param
    context.close()


def luminance(colour):
    """Relative luminance of an rgb(...) colour, 0 to 1 (WCAG)."""
    parts = [int(c) / 255 for c in re.findall(r"\d+", colour)[:3]]
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in parts
    ]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_a_request_elsewhere_and_an_error_would_be_noticed(desktop, server):
    """What `read` holds for every page of every test here."""
    reader = Reader(desktop, server).open()
    assert reader.complaints() == []
    away = "https://example.invalid/"
    reader.page.route(away, lambda route: route.abort())
    reader.page.evaluate("u => fetch(u).catch(() => 0)", away)
    reader.page.evaluate("console.error('something went wrong')")
    reader.page.close()
    assert away in reader.complaints()
    assert "something went wrong" in reader.complaints()


@pytest.mark.parametrize("path, title", PAGES.items())
def test_nothing_scrolls_sideways_on_a_phone(read, phone, path, title):
    reader = read(path, title, context=phone)
    reader.page.wait_for_load_state("networkidle")
    assert reader.page.evaluate(OVERFLOW) == [0, 0]
    for icon in reader.page.locator("link[rel~='icon']").all():
        where = icon.get_attribute("href")
        assert not where.startswith(("http:", "https:", "//"))


def test_home_has_a_live_card_for_every_bug_and_opens_it(read):
    reader = read()
    for bug, title in TITLES.items():
        card = reader.keyed(f"card-picture-{bug}")
        expect(card.locator(".js-plotly-plot")).to_be_visible()
        expect(card.get_by_role("figure")).to_have_accessible_name(
            re.compile(f"^{title}: ")
        )
    title = TITLES["rejected_rows"]
    link = reader.page.get_by_role("main").get_by_role("link")
    link.filter(has_text=title).click()
    heading = reader.page.get_by_role("heading", level=1)
    expect(heading).to_have_text(title)
    where = reader.page.url.partition("?")[0]
    assert where == f"{reader.server.url}/rejected_rows"


def test_the_first_screen_shows_claim_table_both_sides_and_row_11(read):
    reader = read("partial_groups", "Partial groups")
    claim = gradebook.load("partial_groups").claim
    words = reader.page.get_by_text(claim)
    picture = reader.keyed("picture-partial_groups")
    svg = picture.locator("svg.main-svg").first
    eleven = svg.locator(".ytick text", has_text=re.compile("^11$"))
    grid = reader.grid
    for seen in (words, grid.frame, eleven):
        expect(seen).to_be_visible()
        box = seen.bounding_box()
        assert box["y"] > 0 and box["y"] + box["height"] <= 800
        assert box["x"] >= 0 and box["x"] + box["width"] <= 1280
    assert reader.page.evaluate("scrollY") == 0
    expect(grid.at(11, "reward")).to_have_text("100")
    expect(grid.at(10, "correct")).to_have_text("+1.000")
    expect(grid.at(10, "faulty")).to_have_text("\u22120.480")
    legend = picture.locator(".legendtext")
    assert legend.all_text_contents() == ["correct", "faulty"]
    reader.marks("partial_groups", correct={10: 1}, faulty={10: -0.47973})


def test_a_row_stands_at_one_height_in_table_and_picture(read):
    reader = read("partial_groups", "Partial groups")
    picture = reader.keyed("picture-partial_groups")
    ticks = picture.locator("svg.main-svg").first.locator(".ytick text")
    frame = reader.grid.frame.bounding_box()
    for row in (0, 5, 11):
        expect(ticks.nth(row)).to_be_visible()
        box = ticks.nth(row).bounding_box()
        middle = box["y"] + box["height"] / 2
        # A header of 35 pixels, rows of 30.
        assert middle == pytest.approx(frame["y"] + 50 + 30 * row, abs=9)


def test_text_is_readable_light_and_dark(read, themed):
    context, scheme = themed
    page = read("rejected_rows", "Rejected rows", context=context).page
    picture = page.locator(".st-key-picture-rejected_rows")
    seen = [
        page.get_by_role("heading", level=1),
        page.get_by_text(gradebook.load("rejected_rows").claim),
        page.get_by_role("heading", name="The line"),
        page.get_by_role("region", name="faulty code"),
        page.get_by_role("region", name="Numbers").first,
        picture.locator(".ytick text").first,
    ]
    for element in seen:
        text, back = element.first.evaluate(COLOURS)
        assert (luminance(back) > 0.8) == (scheme == "light")
        assert contrast(text, back) >= 4.5, (text, back)


def test_the_marks_are_set_apart_by_shape_and_not_by_colour_alone(read):
    reader = read("rejected_rows", "Rejected rows")
    symbols = reader.page.wait_for_function(
        """() => document.querySelector(
          '.st-key-picture-rejected_rows .js-plotly-plot'
        )?._fullData?.filter((t) => t.mode === 'markers')
          .map((t) => [t.name, t.marker.symbol])"""
    ).json_value()
    assert symbols == [["correct", "circle"], ["faulty", "diamond-open"]]
