"""Computation: one computation of advantages that somebody uses on purpose, as values:
the engine's settings, and how it sees the rows of a log."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from gradebook.core.formatting import short
from gradebook.core.settings import Settings
from gradebook.core.vocabulary import BASELINES, SCALES, named
from gradebook.logs.logged_steps import Several

GDPO = "gdpo"
"""The estimator of rewards that are normalized each, and then summed."""

EPS_WORDS = {"after": "", "inside": " inside the root", "least": " as the least"}
"""Words after eps, by the setting `eps_at`."""


@dataclass(frozen=True)
class Second:
    """A second normalization over the step.

    over       what it weighs a row by: rows, tokens or transitions
    ddof       of its variance
    eps_after  the computation's eps is added after its root, in place of 1e-8 inside
    """

    over: str
    ddof: int
    eps_after: bool = False

    @property
    def words(self) -> str:
        after = ", its eps after the root" if self.eps_after else ""
        return f"ddof {self.ddof} of the whitening{after}"


PROMPT, TEXT, ID_AND_TEXT, DRAW = "prompt", "text", "id and text", "draw"
"""The labels that a view may group rows by. A draw is a run of equal prompts."""


@dataclass(frozen=True)
class View:
    """How a computation sees the rows of a log. The engine runs on a batch that is
    relabelled so (`space.viewed`); no arithmetic knows of a view.

    by         PROMPT, TEXT, ID_AND_TEXT or DRAW
    draw       with DRAW, the rows of one draw; None if a run is one draw
    all_rows   rows without tokens, scores or a vote of their own count like others
    no_copies  the last rows of a step are copies that fill it, and have no vote
    """

    by: str = PROMPT
    draw: int | None = None
    all_rows: bool = False
    no_copies: bool = False

    @property
    def regroups(self) -> bool:
        """The groups are not the log's prompts, or have fewer rows."""
        return self.by != PROMPT or self.no_copies

    @property
    def words(self) -> str:
        """How rows are grouped; "" for the prompts of the log."""
        if self.no_copies:
            return "grouped by prompt, without the copies that fill a step"
        if self.by == DRAW and self.draw is None:
            return "grouped by draw: neighbouring rows of one prompt"
        return {
            PROMPT: "",
            TEXT: "grouped by prompt text",
            ID_AND_TEXT: "grouped by id and text",
            DRAW: f"grouped by draw: {self.draw} rows each time a prompt is drawn",
        }[self.by]


@dataclass(frozen=True)
class Computation:
    """One computation of advantages: names of the vocabulary, values of the settings.

    about     what a deviation is measured from: "mean" or "baseline"
    lone_row  what a row without siblings is compared with: itself ("zero")
              or 0 ("raw"); "" if the log has no such row
    second    a second normalization, or None
    ended     rows without EOS are left out
    clip      rewards beyond it were clipped; None if none were
    several   how the reward was made of several, each normalized; None for a sum
    """

    baseline: str
    scale: str
    ddof: int = 1
    eps: float = 0.0
    eps_at: str = "after"
    about: str = "mean"
    lone_row: str = ""
    second: Second | None = None
    ended: bool = False
    clip: float | None = None
    view: View = View()
    several: Several | None = None

    @classmethod
    def of(cls, s: Mapping[str, Any]) -> Self:
        """The computation of an engine's settings."""
        second = Second(s["whiten_over"], s["whiten_ddof"], s["whiten_eps"] == "after")
        return cls(
            s["baseline"],
            s["scale"],
            s["ddof"],
            s["eps"],
            s["eps_at"],
            about=s["spread_about"],
            lone_row=s["lone_row"],
            second=second if s["whiten_tokens"] else None,
            ended=s["mask_no_eos"],
            clip=s["reward_clip"],
        )

    @cached_property
    def settings(self) -> Settings:
        """The engine's settings that compute it."""
        second = self.second or Second("tokens", 1)
        return Settings(
            baseline=self.baseline,
            scale=self.scale,
            ddof=self.ddof,
            eps=self.eps,
            eps_at=self.eps_at,
            spread_about=self.about,
            lone_row=self.lone_row or "raw",
            whiten_tokens=self.second is not None,
            whiten_over=second.over,
            whiten_ddof=second.ddof,
            whiten_eps="after" if second.eps_after else "inside",
            mask_no_eos=self.ended,
            reward_clip=self.clip,
        )

    @property
    def over(self) -> str:
        """The weight of a row in a second normalization; "" without one."""
        return self.second.over if self.second else ""

    @property
    def estimator(self) -> str:
        """grpo, or batch_mean/group_std; GDPO if rewards were normalized each."""
        if self.several:
            return GDPO
        name = named(self.baseline, self.scale, self.over).estimator
        return "rloo_vectorized" if name == "rloo" and self.lone_row == "zero" else name

    @property
    def is_gdpo(self) -> bool:
        """The rewards were normalized each and summed, and their sum normalized over
        the step, or not at all."""
        again = self.second is not None
        scales = ("none",) if again else ("none", "batch_std", "advantage_std")
        baselines = ("none", "group_mean", "batch_mean")
        is_sum = self.baseline in baselines and self.scale in scales
        return self.several is not None and is_sum

    @property
    def title(self) -> str:
        title = named(self.baseline, self.scale, self.over).title
        return "GDPO" if self.several else title

    @property
    def divides(self) -> bool:
        """Whether a standard deviation divides the advantages."""
        return SCALES[self.scale].is_std

    @property
    def adds_eps(self) -> bool:
        return SCALES[self.scale].adds_eps

    @property
    def details(self) -> str:
        """The details that follow the title in brackets."""
        details = [*self._details_of_several()]
        if self.divides:
            details.append(f"ddof {self.ddof}")
        if self.adds_eps:
            details.append(f"eps {short(self.eps)}{EPS_WORDS[self.eps_at]}")
        if self.divides and self.about == "baseline":
            details.append("spread about the baseline")
        if self.second:
            details.append(self.second.words)
        if self.ended:
            details.append("rows without EOS left out")
        if self.clip is not None:
            details.append(f"rewards clipped at {short(self.clip)}")
        if self.view.words:
            details.append(self.view.words)
        if self.view.all_rows:
            details.append("all rows count")
        return ", ".join(details)

    def _details_of_several(self) -> Iterator[str]:
        """How several rewards became one, and how their sum was normalized."""
        if self.several is None:
            return
        yield f"each reward normalized in its group (eps {short(self.several.eps)})"
        weights = [f"{weight:g}" for weight in self.several.weights]
        yield f"summed with the weights {' and '.join(weights)}"
        if self.is_gdpo and (self.second or self.divides):
            yield f"the sum normalized over {self.over or 'the batch'}"
        elif self.is_gdpo:
            yield "the sum not normalized again"

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that it needs besides prompt, reward and advantage."""
        needs_length = "length" in BASELINES[self.baseline].needs
        rests = {
            "length": needs_length or self.over == "tokens",
            "steps": self.over == "transitions",
            "eos": self.ended,
            "text": self.view.by in (TEXT, ID_AND_TEXT),
        }
        return tuple(column for column in rests if rests[column])

    @property
    def couples_prompts(self) -> bool:
        """A row's advantage depends on rows of other prompts."""
        records = BASELINES[self.baseline], SCALES[self.scale]
        return any(r.couples_prompts for r in records) or self.second is not None


USUAL = ("grpo", "dr_grpo", "rloo", "rloo_vectorized", "batch_zscore")
"""Estimators that come first among equally plain computations, in this order."""


def plainness(c: Computation) -> tuple:
    """The key that sorts usual computations first, among those that fit as well."""
    name = c.estimator
    return (
        c.view.all_rows,
        c.ended,
        c.view.regroups,
        c.clip is not None,
        c.second is not None,
        c.eps_at != "after",
        c.about != "mean",
        USUAL.index(name) if name in USUAL else len(USUAL),
    )
