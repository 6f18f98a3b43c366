"""The words of the screen, and text made safe for it."""

import html
import re
from collections.abc import Callable, Iterable

from gradebook.cases.state import message_of as message_of
from gradebook.core.formatting import minus

MARKDOWN = re.compile(r"([\\*_{}\[\]()#+!|$<>~:&-])")
LISTED = re.compile(r"^([0-9]+)\.(?= |$)")
CODE = re.compile(r"(?<!`)(`[^`]+`)(?!`)")


def plain(text: str) -> str:
    """A sentence that Markdown leaves as it is, save `code` between backticks. Its
    numbers are printed as those of the pictures."""
    return _unmarked(text, minus)


def as_typed(text: str) -> str:
    """As `plain`, with numbers as a person typed them: an error's words, which quote
    what was found."""
    return _unmarked(text, str)


def _unmarked(text: str, printed: Callable[[str], str]) -> str:
    parts = CODE.split(" ".join(str(text).split()))
    for number in range(0, len(parts), 2):  # between two of them is code
        escaped = MARKDOWN.sub(r"\\\1", printed(parts[number]))
        parts[number] = escaped.replace("`", "\\`")
    return LISTED.sub(r"\1\\.", "".join(parts))


def titled(title: str, text: str = "", level: int = 2) -> str:
    """A heading and its text as one element: `st.header` takes three times as long."""
    return f"{'#' * level} {title}\n\n{text}"


def safe(text: object) -> str:
    return html.escape(str(text))


ROWS = re.compile(
    r"\b[Rr]ow (?P<row>\d+)|\b[Rr]ows (?P<first>\d+)"
    r"(?: to (?P<last>\d+)|(?P<more>(?:, \d+)*(?:,? and \d+)?))"
)
"""How a scenario's story and lesson mention rows: "row 3", "rows 0 to 2", "rows 3, 5
and 7". It is the notation of these texts (scenarios/README.md): people write them, and
no code does. Brackets around each mention would have to be taken off in every other
place that shows the texts."""


def pointing(
    markup: str, rows: Iterable[int], stage: str = "", token: int | None = None
) -> str:
    """Markup that points at rows, or at one token of a row, and at a stage of the board
    while it has the pointer or the focus (board/program/point.js)."""
    facts = {"rows": " ".join(map(str, rows)), "stage": stage, "token": token}
    data = "".join(
        f' data-{name}="{safe(fact)}"'
        for name, fact in facts.items()
        if fact not in ("", None)
    )
    return f'<span class="gb-point" tabindex="0" role="link"{data}>{markup}</span>'


def pointed(text: str) -> str:
    """Text of a scenario as Markdown with HTML: the rows that it mentions point at
    those of the board."""
    return ROWS.sub(_mention, plain(text))


def _mention(match: re.Match[str]) -> str:
    if match["last"]:
        rows = [*range(int(match["first"]), int(match["last"]) + 1)]
    else:
        rows = [int(number) for number in re.findall(r"\d+", match[0])]
    return pointing(match[0], rows)


TERMS = {
    "rollout": "one answer that the model sampled to a prompt; a row of the board,"
    " or several rows if it was cut into pieces.",
    "group": "the rollouts that are compared with each other: those of one prompt.",
    "sibling": "another rollout of the same prompt.",
    "baseline": "what a reward is compared with, usually the mean of its group.",
    "advantage": "how far a row's score is from its baseline, divided by a"
    " scale. It weights the row's tokens in the loss.",
    "mean": "an average; usually of the rewards of the rows that count in a group.",
    "deviation": "the standard deviation: the typical distance from the mean.",
    "whiten": "to subtract a mean and divide by a deviation, over a step's tokens.",
    "pass": "one forward and backward run over a part of a step, a micro-batch.",
    "rank": "one of the processes that train together; it holds a part of the tokens.",
    "ddof": "ddof 1 divides the variance by n − 1; ddof 0 divides it by n.",
    "lone row": "the only row of its group that counts, so there is nothing"
    " to compare it with.",
    "credited": "the row may earn an advantage.",
    "counted": "the row's reward enters its group's mean and deviation.",
    "kept": "transitions that are left after subsampling.",
    "transition": "one step of an episode: what the model saw and what it"
    " answered. An episode of several steps has several.",
    "EOS": "the end-of-sequence token. A rollout without it was cut off.",
    "KL": "a term of the loss that grows as the policy moves away from the"
    " reference model.",
    "eps": "a small number added to the deviation, so that no division is by zero.",
    "response mask": "which tokens of a row are trained.",
    "estimator": "a named way to compute advantages: a baseline, a scale and"
    " what becomes of lone rows.",
    "outlier": "a reward far from all others.",
    "stride": "a block of equally many rows, cut by position.",
    "guard": "the check that leaves a group without spread out of the loss.",
}
"""What each term means, in one sentence."""


def terms(text: str) -> str | None:
    """What the terms in the text mean, as Markdown for a tooltip; else None."""
    explained = [
        f"**{term}**: {meaning}"
        for term, meaning in TERMS.items()
        if re.search(rf"\b{term}", text, re.IGNORECASE)
    ]
    return "\n\n".join(explained) or None
