"""The limits of a server, as its README prints them."""

from pathlib import Path

from gradebook.ui.server import limits

README = Path(__file__).parents[2] / "gradebook/classroom/README.md"


def test_the_readme_prints_the_limits_of_the_code():
    lines = [f"| {limit} | {protects} |" for limit, protects in limits().items()]
    table = "\n".join(["| limit | protects |", "|---|---|", *lines])
    text = README.read_text("utf-8")
    _, _, rest = text.partition("<!-- limits -->\n")
    printed, _, _ = rest.partition("\n<!-- end of limits -->")
    assert printed == table
