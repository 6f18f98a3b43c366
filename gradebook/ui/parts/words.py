"""The words of the screen, and text made safe for it."""

from __future__ import annotations

import html
import re

from gradebook.core.errors import GradebookError
from gradebook.core.formatting import minus

STATUS = {
    "fixed": ":green-badge[fixed]",
    "open": ":orange-badge[open]",
    "disputed": ":violet-badge[disputed]",
}

LABELS = {
    "estimator": "Estimator",
    "baseline": "Baseline",
    "scale": "Scale",
    "spread_about": "Spread about",
    "ddof": "ddof",
    "lone_row": "Lone row",
    "eps": "eps",
    "group_size": "Group size",
    "min_group_size": "Minimum group size",
    "mask_no_eos": "Mask no-EOS rows",
    "reward_bias": "Reward bias",
    "reward_scaling": "Reward scaling",
    "reward_clip": "Reward clip",
    "whiten_tokens": "Whiten tokens",
    "beta": "beta",
    "loss": "Loss",
    "max_tokens": "Maximum tokens",
    "accumulation": "Accumulation steps",
}

HELP = {
    "estimator": "An estimator under verl's key: sets baseline, scale, lone"
    " row, ddof and eps together.",
    "lone_row": "A group with one counted row: zero gives it advantage 0,"
    " raw passes its score through.",
    "eps": "Added to the standard deviation. A number such as 1e-5.",
    "group_size": "Rows per prompt the trainer was configured with. Empty:"
    " the largest group's size. Only the faulty engine reads it.",
    "min_group_size": "Groups with fewer rows leave the batch before either"
    " engine sees it. 1 keeps all.",
    "mask_no_eos": "Rows that did not end with EOS earn no advantage.",
    "reward_clip": "Scores are cut at plus and minus this. Empty: no clip.",
    "max_tokens": "Used by the dr_grpo loss. Empty: the mask's width.",
    "beta": "Weight of the KL term.",
    "ddof": "1 divides by n - 1, 0 by n.",
}

STAGES = {
    "score": "The reward after bias, scaling and clip.",
    "credited": "Whether the row may earn an advantage.",
    "counted": "Whether the row may enter a statistic.",
    "group": "The group the row is compared within, by number.",
    "baseline": "What the score is compared with.",
    "scale": "What the distance from the baseline is divided by.",
    "standardized": "(score − baseline) / scale.",
    "advantage": "What weighs the row's tokens in the loss.",
    "trained": "Whether the row's tokens enter the loss.",
    "loss": "Policy term + beta × KL over the trained tokens.",
}

MARKDOWN = re.compile(r"([\\*_{}\[\]()#+!|$<>~:&-])")
LISTED = re.compile(r"^([0-9]+)\.(?= |$)")
TRAINING_BATCH = (
    "This is of the training batch, with every row: in evaluation a prompt"
    " has one, and no siblings."
)
CODE = re.compile(r"(?<!`)(`[^`]+`)(?!`)")


def plain(text: str) -> str:
    """Text that Markdown leaves as it is, save `code` between backticks.
    (Streamlit itself still shows -> as an arrow, and :name: as an emoji.)"""
    parts = CODE.split(" ".join(str(text).split()))
    said = "".join(
        part
        if at % 2
        else MARKDOWN.sub(r"\\\1", minus(part)).replace("`", "\\`")
        for at, part in enumerate(parts)
    )
    return LISTED.sub(r"\1\\.", said)


def titled(title: str, text: str = "", level: int = 2) -> str:
    """A heading and what it begins with, as Markdown: one element, where
    `st.header` alone takes the browser the time of three."""
    return f"{'#' * level} {title}\n\n{text}"


def safe(text: object) -> str:
    """Text for HTML."""
    return html.escape(str(text))


def folded(title: str, text: str) -> str:
    """Text that opens under its title, as HTML: with no run of the page, and
    one element where a popover is several."""
    said = "".join(
        f"<code>{safe(part[1:-1])}</code>" if at % 2 else safe(minus(part))
        for at, part in enumerate(CODE.split(text))
    )
    return (
        f'<details class="gb"><summary>{safe(title)}</summary>'
        f"<p>{said}</p></details>"
    )


def place(error: GradebookError) -> str:
    """An error in the words of the page: column, row, what and what not."""
    where = LABELS.get(error.key, error.key.replace("_", " "))
    if error.row is not None:
        where += f", row {error.row}"
    if not error.expected:
        return str(error)
    found = f", found {error.found}" if error.found else ""
    said = f"{error.message}: " if error.message else ""
    return f"{where}: {said}expected {error.expected}{found}"
