"""Terms are explained where they are met."""

from gradebook.ui.parts.words import TERMS, terms


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
