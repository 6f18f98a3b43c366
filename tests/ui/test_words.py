"""Text made safe for the screen."""

import pytest

from gradebook.ui.parts import words


def test_folded_text_is_html_with_its_code_and_no_tags_of_its_own():
    found = words.folded("A <hint>", "Set `eps` to 0 < x.")
    assert found == (
        '<details class="gb"><summary>A &lt;hint&gt;</summary>'
        "<p>Set <code>eps</code> to 0 &lt; x.</p></details>"
    )


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


def test_numbers_below_zero_have_the_sign_of_the_pictures():
    assert words.plain("from -2 `x -1`") == "from −2 `x -1`"
    assert "<p>from −2</p>" in words.folded("hint", "from -2")
