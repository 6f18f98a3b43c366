"""Text made safe for the screen, and terms explained where they are met."""

import pytest

from gradebook.ui.parts import words
from gradebook.ui.parts.words import TERMS, terms


def test_a_heading_of_a_level_stands_above_its_text():
    assert words.titled("The law") == "## The law\n\n"
    assert words.titled("group", "By number.", 3) == "### group\n\nBy number."


@pytest.mark.parametrize(
    "text, said",
    [
        ("a `key_name` and b_c", "a `key_name` and b\\_c"),
        ("``![x](https://e.example/t.png)`", None),
        ("```![x](https://e.example/t.png)`", None),
        ("` `` ![x](https://e.example/t.png)", None),
        ("&lt;b&gt;", "\\&lt;b\\&gt;"),
        ("12. of 20", "12\\. of 20"),
        ("2.5 of 20.", "2.5 of 20."),
    ],
)
def test_text_is_shown_and_never_acted_on(text, said):
    found = words.plain(text)
    assert said in (found, None)
    assert "![" not in found and "](" not in found


def test_text_for_html_is_escaped():
    assert words.safe("<b>&") == "&lt;b&gt;&amp;"


def test_numbers_below_zero_have_the_sign_of_the_pictures():
    assert words.plain("from -2 `x -1`") == "from −2 `x -1`"


def test_a_text_explains_the_terms_in_it_and_no_others():
    found = terms("A lone row has ddof 1.", "Transitions are kept.")
    assert "**lone row**: the only row" in found
    assert "variance by n − 1" in found and "**transition**" in found
    assert "**kept**" in found and "**bnpo**" not in found
    assert terms("Nothing to explain.") is None


def test_the_terms_that_strangers_asked_for_are_there():
    asked = (
        *("ddof", "lone row", "credited", "counted", "kept", "transition"),
        *("bnpo", "residual", "mean"),
    )
    assert set(asked) <= set(TERMS)
