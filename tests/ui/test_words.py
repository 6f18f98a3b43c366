"""Text made safe for the screen."""

import re

import pytest

from gradebook.cases.scenario import FOLDER, load
from gradebook.ui.parts import words


@pytest.mark.parametrize(
    "text, shown",
    [
        ("a `key_name` and b_c", "a `key_name` and b\\_c"),
        ("``![x](https://e.example/t.png)`", None),
        ("```![x](https://e.example/t.png)`", None),
        ("` `` ![x](https://e.example/t.png)", None),
        ("&lt;b&gt;", "\\&lt;b\\&gt;"),
        ("12. of 20", "12\\. of 20"),
        ("2.5 of 20.", "2.5 of 20."),
        ("from -2 `x -1`", "from −2 `x -1`"),
    ],
)
def test_text_is_shown_and_never_acted_on(text, shown):
    plain = words.plain(text)
    assert shown in (plain, None)
    assert "![" not in plain and "](" not in plain


def test_what_an_error_found_is_shown_as_it_was_typed():
    assert words.as_typed("eps, found '-5 -2'") == "eps, found '\\-5 \\-2'"
    assert words.as_typed("![x](y)") == "\\!\\[x\\]\\(y\\)"


def test_text_for_html_is_escaped():
    assert words.safe("<b>&") == "&lt;b&gt;&amp;"


def test_a_text_explains_the_terms_in_it_and_no_others():
    explained = words.terms("A lone row has ddof 1. Transitions are kept.")
    terms_in_it = ("lone row", "ddof", "transition", "kept")
    assert all(f"**{term}**: " in explained for term in terms_in_it)
    assert "**stride**" not in explained
    assert words.terms("Nothing to explain.") is None


def test_the_rows_that_a_text_mentions_point_at_the_board():
    text = words.pointed(
        "Rows 0 to 2 agree, rows 3, 5 and 7 < 1 do not. Row 8's is new."
    )
    assert 'data-rows="0 1 2">Rows 0 to 2</span>' in text
    assert 'data-rows="3 5 7">rows 3, 5 and 7</span> \\< 1' in text
    assert 'data-rows="8">Row 8</span>' in text
    # One row is no range: 100 is its new reward.
    changed = words.pointed("Change row 1 to 100.")
    assert (
        changed.startswith("Change <span")
        and 'data-rows="1">row 1</span> to' in changed
    )
    # What else is markup in a text stays text.
    assert words.pointed("<b>row 1</b>").startswith("\\<b\\><span")


def test_every_row_that_a_case_mentions_is_one_of_its_rows():
    mentions = 0
    for path in FOLDER.glob("*.toml"):
        case = load(path.stem)
        text = words.pointed(case.story) + words.pointed(case.lesson)
        for rows in re.findall(r'data-rows="([0-9 ]+)"', text):
            mentions += 1
            assert max(map(int, rows.split())) < len(case.rows), (case.name, rows)
    assert mentions > 50
