"""A handout stands alone, escapes what it prints, and has the engines'
numbers."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

import gradebook
from gradebook.cases.table import Table
from gradebook.output import handout as handouts
from gradebook.output.handout import handout

VOID = {"meta", "br"}


class Page(HTMLParser):
    """Tags with their attributes, the text, and whether tags close."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize("bug", gradebook.BUGS)
def test_it_says_everything_a_reader_needs_and_loads_nothing_from_elsewhere(bug):
    scenario, swapped = gradebook.load(bug), gradebook.bug(bug)
    html = handout(bug)
    page = Page(html)
    text = words(page.text).replace("\u2212", "-")  # the minus sign
    for sentence in (
        scenario.title,
        scenario.claim,
        scenario.story,
        scenario.rule,
        *(status.sentence for status in scenario.status),
        scenario.telltale.text,
        scenario.affected.look,
        scenario.affected.workaround,
        *scenario.affected.keys,
        *(source.label for source in scenario.sources),
    ):
        assert words(sentence).replace("`", "") in text
    assert text.count(f"def {swapped.stage}(") == 2
    assert f"gradebook/bugs/{bug}.py" in text
    assert page.open == []
    loaders = {"script", "link", "img", "iframe", "object", "embed", "base"}
    assert not loaders & {tag for tag, _ in page.tags}
    assert "@import" not in html and "url(" not in html
    for tag, attributes in page.tags:
        assert not {"src", "srcset", "onload", "onclick"} & set(attributes)
        assert "href" not in attributes or tag == "a"


def test_the_table_has_the_reports_numbers():
    text = handout("partial_groups")
    # Worked out in scenarios/partial_groups.toml.
    assert '<tr class="at"><td>10</td><td>C</td><td>2</td>' in text
    cells = '<td class="n">+1.000</td><td class="n">\u22120.480</td>'
    assert cells in text
    assert "25.750" in text and "49.507" in text


def test_what_a_scenario_says_is_escaped(monkeypatch):
    evil = "<script>alert('x')</script> & \"more\""
    main = gradebook.load("partial_groups")
    rows = Table.of_columns({"prompt": [evil] * len(main.rows)}, main.rows.cells)
    source = replace(main.sources[0], url="javascript:alert(1)", note=evil)
    changed = replace(main, title=evil, claim=evil, rows=rows, sources=(source,))
    monkeypatch.setattr(handouts, "load", lambda _: changed)
    text = handout("partial_groups")
    page = Page(text)
    assert "script" not in {tag for tag, _ in page.tags}
    assert evil in page.text and page.open == []
    assert all("javascript" not in found.get("href", "") for _, found in page.tags)


def test_a_bug_of_tokens_has_a_line_and_a_number_for_each_token():
    text = handout("live_weight")
    # A = 0.5; the faulty push is A (1 + logp) at logp -0.5, -1 and -2.
    assert '<td class="n">+0.500 +0.500 +0.500</td>' in text
    assert '<td class="n">+0.250 0.000 \u22120.500</td>' in text
    assert "Why: row 0, token 2" in text and "row 1, token 2" in text
    assert "Each line is a token" in text
    assert "Row 0, token 2 is worked out" in words(text)
