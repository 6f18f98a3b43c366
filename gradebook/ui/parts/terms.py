"""The field's terms, explained where they are met: a tooltip for a text."""

from __future__ import annotations

import re

TERMS = {
    "advantage": "how far a row's score lies from its baseline, divided by a"
    " scale. It weighs the row's tokens in the loss.",
    "mean": "the average reward of the rows that count in a group.",
    "ddof": "the variance divides by n − ddof: by n − 1 for a sample, by n"
    " for the whole group.",
    "lone row": "the only row of its group that counts, so there is nothing"
    " to compare it with.",
    "credited": "the row may earn an advantage.",
    "counted": "the row's reward enters its group's mean and deviation.",
    "kept": "transitions that are left after subsampling.",
    "transition": "one step of an episode: what the model saw and what it"
    " answered. An episode of several steps has several.",
    "bnpo": "a loss that is averaged over all tokens that are trained, so"
    " leaving rows out makes the other tokens weigh more.",
    "residual": "the largest difference between a logged number and the computed one.",
    "EOS": "the end-of-sequence token. A rollout without it was cut off.",
    "KL": "a term of the loss that grows as the policy moves away from the"
    " reference model.",
    "eps": "a small number added to the deviation, so that no division is by zero.",
    "response mask": "which tokens of a row are trained.",
    "estimator": "a named way to compute advantages: a baseline, a scale and"
    " what becomes of lone rows.",
    "subsampl": "training on some of the transitions, drawn at random.",
    "outlier": "a reward far from all others.",
    "stride": "a block of equally many rows, cut by position.",
}
"""Each term as it is searched for, and what it means in one sentence."""


def terms(*texts: str) -> str | None:
    """What the terms mean that occur in the texts, as Markdown for a
    tooltip; None where none occurs."""
    found = [
        f"**{_title(term)}**: {meaning}"
        for term, meaning in TERMS.items()
        if any(re.search(rf"\b{term}", text, re.IGNORECASE) for text in texts)
    ]
    return "\n\n".join(found) or None


def _title(term: str) -> str:
    return {"subsampl": "subsampling"}.get(term, term)
