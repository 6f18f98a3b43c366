"""Sentences: what was found, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gradebook.cases.record import BUGS, bug
from gradebook.logs.candidates.candidates import Candidate, can_show
from gradebook.logs.candidates.conventions import STANDARD_DEVIATIONS
from gradebook.logs.candidates.wording import in_words, title
from gradebook.logs.verdict.tally import Named


@dataclass(frozen=True)
class Tie:
    """What fits equally well, and why this log cannot tell.

    name   a name from BUGS, or an estimator
    why    a clause
    title  the name as a person reads it
    """

    name: str
    why: str
    title: str


def whose(candidate: Candidate) -> str:
    """The estimator and the trainer's convention, in words."""
    convention = candidate.convention
    name = title(convention.estimator)
    if convention.settings.scale in STANDARD_DEVIATIONS and convention.trainer:
        return f"{name} in {convention.trainer}'s convention"
    return name


def count(number: int, one: str, many: str = "") -> str:
    """ "1 step", "2 steps", "1,000 steps"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def sentence_of(found: Named, declared: Mapping[str, object], empty: int = 0) -> str:
    """What was found; then, in a second sentence, what to do. `declared`
    are the settings that a person named, `empty` the rows without an
    advantage."""
    if found.verdict == "correct":
        said = _correct(found, declared)
    elif found.verdict == "suspect":
        said = _suspect(found)
    elif found.verdict == "cannot tell":
        said = _cannot_tell(found)
    else:
        said = _none_fits(found)
    if empty:
        rows = count(empty, "row has", "rows have")
        said += (
            f" {rows} an empty advantage: what was computed with"
            f" {'it' if empty == 1 else 'them'} is not judged."
        )
    return said


def _correct(found: Named, declared: Mapping[str, object]) -> str:
    c, total = found.candidate, len(found.frame)
    assert c is not None
    name = title(c.estimator)
    rest = whose(c).removeprefix(name)
    steps = f"on {total:,} of {count(total, 'step')}"
    these = f"These are {name} advantages"
    if " " in name and c.estimator not in ("dr_grpo", "none"):
        these = f"These advantages are {name}"
    said = f"{these}{rest}, correct, largest residual {found.residual:.1g} {steps}."
    asked = _askings(found, c)
    if asked:
        return f"{said} {asked}"
    if declared:
        words = ", ".join(f"{k}={v}" for k, v in declared.items())
        return f"{said} This is what {words} asks for."
    return (
        f"{said} Compare the convention with your trainer's configuration:"
        f" {in_words(c.settings, False) or 'no standard deviation'}."
    )


def _askings(found: Named, c: Candidate) -> str:
    """Bugs that give the numbers of `c` under another convention."""
    said = []
    for name in dict.fromkeys(o.bug for o in found.alive if o.bug):
        own = [o for o in found.alive if o.bug == name]
        if not any(o.convention == c.convention for o in own):
            asked = _difference(own[0], c)
            said.append(f"{asked}, then this is {bug(name).title}")
    if not said:
        return ""
    return "If you asked for " + "; if for ".join(said[:3]) + "."


def _difference(suspect: Candidate, correct: Candidate) -> str:
    """The settings of the suspect that the correct candidate lacks."""
    own, other = suspect.convention.settings, correct.convention.settings
    words = [
        f"{name}={own[name]}"
        for name in ("baseline", "scale", "lone_row", "whiten_tokens")
        if own[name] != other[name]
    ]
    return " and ".join(words) or f"eps={own.eps:g} and ddof={own.ddof}"


def _suspect(found: Named) -> str:
    if found.segments:
        return _segmented(found) + _open_it(found)
    c, frame = found.candidate, found.frame
    assert c is not None
    record = bug(c.bug)
    inside = ", ".join([record.title, whose(c), *_group_size(c)])
    off = frame[frame["verdict"] == "suspect"]
    steps = len(off) if found.mixed else len(frame)
    said = (
        f"These are what {record.phrase} computes ({inside}): residual"
        f" {found.residual:.1g} on {steps:,} of"
        f" {count(len(frame), 'step')}"
    )
    if len(off):
        first = off.iloc[0]
        largest = float(off["correct_residual"].max())
        said += (
            f"; {record.correct_phrase} is off by up to {largest:.3g},"
            f" first at step {first['step']}, row {first['row']}"
        )
    if found.mixed:
        said += "; the other steps are correct"
    return f"{said}.{_open_it(found)}"


def _group_size(candidate: Candidate) -> list[str]:
    """The rows per prompt that were guessed for a bug, if any."""
    guesses = dict(candidate.guesses)
    if not candidate.bug or "group_size" not in guesses:
        return []
    if guesses["group_size"] is None:
        return ["group size: the largest group of each step"]
    return [f"group size {guesses['group_size']}"]


def _open_it(found: Named) -> str:
    off = found.frame[found.frame["verdict"] == "suspect"]
    assert found.candidate is not None
    name = bug(found.candidate.bug).title
    if not len(off):
        return f" Read the page {name}."
    step = off["step"].iloc[0]
    return f" Open step {step} on the page {name}, which has the cure."


def _segmented(found: Named) -> str:
    """'Steps 1 to 4 are ...; steps 5 to 8 are ...'."""
    labels = found.frame["step"]
    parts = []
    for s in found.segments:
        c = s.candidate
        name = f"{whose(c)}, correct"
        if c.bug:
            name = f"{bug(c.bug).title} ({bug(c.bug).phrase}, {whose(c)})"
        steps = f"teps {labels.iloc[s.first]} to {labels.iloc[s.last]}"
        parts.append(f"{steps}: {name}")
    return "S" + "; s".join(parts) + "."


def _cannot_tell(found: Named) -> str:
    frame, c = found.frame, found.candidate
    if not len(frame):
        return "Cannot tell: no step of this log could be judged."
    if found.why == "no advantages":
        return (
            "Cannot tell: this log has no advantages. Log them beside the"
            " rewards, and check again."
        )
    if c is None:
        return (
            "Cannot tell: nothing varies. In every group the rewards are"
            " equal and the advantages are 0, whatever was computed. Check"
            " steps on which rewards differ."
        )
    if found.why == "unlisted":
        return (
            f"Cannot tell: {title(c.estimator)} with"
            f" {in_words(c.settings)} gives these numbers (residual"
            f" {found.residual:.1g}), but no listed trainer computes so. If"
            " yours is configured like that, declare it, for example"
            f" {_declaration(c)}."
        )
    if found.why == "rounding":
        return (
            f"Cannot tell: {whose(c)} is within what rounding of the"
            f" rewards can do (residual {found.residual:.2g}), and so may"
            " other computations be. Log rewards in float64, or subtract a"
            " constant from them."
        )
    if found.why == "split":
        return (
            "Cannot tell: some steps are not whole. Sort the log by step,"
            " and check again."
        )
    names = dict.fromkeys(o.bug for o in found.alive)
    titles = " and ".join(bug(n).title for n in names)
    would = "; ".join(bug(n).would_tell for n in names)
    fits = "fits" if len(names) == 1 else "fit"
    return (
        f"Cannot tell: {titles} {fits}, but too few rows tell it from"
        f" chance. What would tell: {would}."
    )


def _declaration(candidate: Candidate) -> str:
    s = candidate.settings
    pairs = [f"baseline={s.baseline}", f"scale={s.scale}"]
    if s.scale in STANDARD_DEVIATIONS:
        pairs += [f"ddof={s.ddof}", f"eps={s.eps:g}"]
    pairs.append(f"lone_row={s.lone_row}")
    return "--declared " + ",".join(pairs)


def _none_fits(found: Named) -> str:
    c, frame = found.candidate, found.frame
    what = (
        " Check the columns, the weights of the rewards and the group size"
        " below, and open the worst step."
    )
    if found.segments:
        said = _segmented(found)
        return f"None of the known computations fits every step. {said}{what}"
    off = frame[~found.fits]
    if c is None or not found.fits.any():
        known = frame[frame["residual"].notna()]
        near = known.loc[known["residual"].idxmin()] if len(known) else None
        said = "None of the known computations fits"
        if near is not None and near["estimator"]:
            named = title(near["estimator"])
            said += (
                f": the closest is {named} with residual"
                f" {near['residual']:.2g} at step {near['step']}"
            )
        return f"{said}.{what}"
    first = off.iloc[0]
    told = f"first not step {first['step']}"
    if first["verdict"] in ("correct", "suspect"):
        other = bug(first["bug"]).title if first["bug"] else "correct"
        told += f" ({other}, {title(first['estimator'])}, fits there)"
    else:
        told += f" (residual {first['correct_residual']:.2g} there, row {first['row']})"
    engine = f"{bug(c.bug).phrase} in " if c.bug else "correct "
    return (
        "None of the known computations fits every step: the closest is"
        f" {engine}{whose(c)}, which fits {int(found.fits.sum())} of"
        f" {count(len(frame), 'step')}, {told}.{what}"
    )


def ties_of(found: Named) -> tuple[Tie, ...]:
    """What fits equally well, and why."""
    c = found.candidate
    if c is None or found.verdict == "none fits" or found.segments:
        return ()
    own = c.bug if found.verdict != "cannot tell" else ""
    ties: dict[str, Tie] = {}
    for name in dict.fromkeys(o.bug for o in found.alive):
        if name and name != own:
            others = [o for o in found.alive if o.bug == name]
            ties[name] = Tie(name, _why(c, others), bug(name).title)
    same = "gives the same numbers on every step of this log"
    for other in found.alive:
        if other.bug == own and other.estimator != c.estimator:
            name = other.estimator
            ties.setdefault(name, Tie(name, same, title(name)))
    if c.estimator == "grpo" or "grpo" in ties:
        ties["grpo_vectorized"] = Tie(
            "grpo_vectorized",
            "it is the same computation as GRPO",
            "GRPO (vectorized)",
        )
    return tuple(ties.values())


def _why(named: Candidate, others: list[Candidate]) -> str:
    """Why a log cannot tell a bug from what it is named by."""
    record = bug(others[0].bug)
    same = "it gives the same numbers on every step of this log"
    if any(o.convention == named.convention for o in others):
        return f"{same}; {record.would_tell} would tell"
    asked = _difference(others[0], named)
    return (
        f"{same} where the trainer was asked for {asked}; declare what it was asked for"
    )


def convention_notes(found: Named) -> tuple[str, ...]:
    """Conventions of the named computation that fit equally well."""
    c = found.candidate
    if c is None or c.settings.scale not in STANDARD_DEVIATIONS:
        return ()
    alike = {
        o.settings.eps
        for o in found.alive
        if (o.bug, o.estimator, o.settings.ddof)
        == (c.bug, c.estimator, c.settings.ddof)
        and o.settings.eps != c.settings.eps
    }
    if not alike:
        return ()
    words = ", ".join(f"{eps:g}" for eps in sorted(alike, reverse=True))
    verb = "fits" if len(alike) == 1 else "fit"
    return (
        f"eps {c.settings.eps:g} has the smallest residual; eps {words}"
        f" {verb} within the rounding of the log too.",
    )


def unchecked_notes(has: frozenset[str]) -> tuple[str, ...]:
    """Bugs that these columns, or any advantages, cannot show."""
    notes = []
    for name in BUGS:
        record = bug(name)
        if not record.in_advantages:
            notes.append(
                f"{record.title} leaves no trace in advantages, so this"
                f" check can never name it; it takes {record.tells}."
            )
        elif not can_show(record, has):
            notes.append(f"Not checked: {record.title}; it takes {record.tells}.")
    return tuple(notes)
