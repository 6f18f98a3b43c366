"""The one table of columns: what batch, table, scenario, link, recording and log call
a column, what it holds, and how a person types it.

To add a column, add a line here. A column of a batch is also a field of `Batch`, and
`batch.completed` has the value that an absent one takes; nothing else has to change. A
cell is what a person typed: text for labels, numbers and lists, True or False for flags
and tokens.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gradebook.core.errors import GradebookError, refuse

Cell = str | bool


@dataclass(frozen=True)
class Column:
    """What is known about one column.

    Its kind is label, number, whole, index (a whole number that only distinguishes
    rows; a name in a log), flag, list (a number per token), tokens (a flag per token)
    or reason (why a response ended).
    """

    kind: str
    help: str = ""  # one sentence for a person; "" if only logs have the column
    aliases: str = ""  # what logs call it, beside its name
    title: str = ""  # its heading; the name, unless it is another
    default: Cell = ""  # the cell that changes nothing
    like: str = ""  # the column, if there, whose cells fill this one
    least: int = 0  # the smallest whole number that it holds
    guessed: bool = True  # a log's column of that name is taken for it
    name: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """What logs call the column, likeliest first. Its own name comes first, unless
        the aliases list it. None if a person must name a log's column."""
        if not self.guessed:
            return ()
        aliases = tuple(self.aliases.split())
        return aliases if self.name in aliases else (self.name, *aliases)


_TABLE = {
    "prompt": Column(
        "label",
        "Rows with the same prompt are one group.",
        "uid group_id group group_index group_idx prompt_id prompt_index prompt_idx"
        " problem_id question_id query_id task_id instance_id example_id data_id prompt"
        " prompts input inputs input_prompt question problem query instruction idx",
        default="A",
    ),
    "reward": Column(
        "number",
        "The rollout's reward, a number with a decimal point.",
        "rewards total_reward reward_total final_reward reward_sum outcome_reward"
        " reward_score score scores seq_reward task_reward token_level_scores"
        " token_level_rewards avg",
        default="0",
    ),
    "scored": Column(
        "flag",
        "A reward function gave the row a value. The reward of a row that is not"
        " scored is a filler.",
        "is_scored has_reward",
        default=True,
    ),
    "rollout": Column(
        "label",
        "Rows of one prompt with the same label are pieces of one rollout.",
        "rollout_id trajectory_id sample_id",
    ),
    "rank": Column(
        "index",
        "The number of the process that holds the row.",
        "process dp_rank cp_rank",
        default="0",
    ),
    "text": Column(
        "label",
        "What the prompt says, as the trainer sees it.",
        "prompt_text question_text",
        default="A",
        like="prompt",
    ),
    "eos": Column(
        "flag",
        "The row ended with an end-of-sequence token.",
        "has_eos ended_with_eos finished is_finished terminated completed",
        title="EOS",
        default=True,
    ),
    "step": Column(
        "index",
        "The training step that the row belongs to.",
        "global_step global_steps training_step train_step rollout_step iteration"
        " iter update epoch",
        default="0",
    ),
    "steps": Column(
        "whole",
        "Transitions of the row's episode.",
        "num_steps n_steps episode_length episode_len episode_steps num_turns n_turns"
        " turns transitions",
        default="1",
        like="kept_steps",
        least=1,
    ),
    "kept_steps": Column(
        "whole",
        "Transitions that are left after subsampling.",
        "kept_transitions num_kept_steps subsampled_steps",
        title="kept",
        default="1",
        like="steps",
    ),
    "generation": Column(
        "index",
        "Rows with the same number were generated together; by default those of a"
        " step.",
        default="0",
        like="step",
        guessed=False,  # logs call a response's text so
    ),
    "extent": Column(
        "whole",
        "Tokens of the response, with the text of tools; at least up to the last"
        " unmasked token.",
        default="0",
        guessed=False,
    ),
    "mask": Column(
        "tokens",
        "The tokens that the row learns from.",
        "response_mask completion_mask loss_mask action_mask",
        title="response mask",
        default=True,
    ),
    "logp": Column(
        "list",
        "Log-probability of each token under the policy, separated by spaces.",
        default="-1",
    ),
    "ref_logp": Column(
        "list",
        "Log-probability of each token under the reference model, separated by spaces.",
        title="ref logp",
        default="-1",
        like="logp",
    ),
    "old_logp": Column(
        "list",
        "Log-probability of each token under the policy as it was when the update"
        " began.",
        title="old logp",
        default="-1",
        like="logp",
    ),
    "behaviour_logp": Column(
        "list",
        "Log-probability of each token in the engine that sampled it.",
        title="behaviour logp",
        default="-1",
        like="logp",
    ),
    "value": Column(
        "list",
        "What the critic says of the state before each token.",
        default="0",
    ),
    "advantage": Column(
        "number",
        aliases="advantages adv advs seq_advantage advantage_mean",
    ),
    "length": Column(
        "whole",
        aliases="lengths response_length response_len response_tokens"
        " completion_length completion_len completion_tokens output_length"
        " output_tokens num_tokens n_tokens num_generated_tokens gen_len seq_len",
    ),
    "truncated": Column(
        "flag",
        aliases="is_truncated no_eos seq_no_eos seq_no_eos_mask hit_max_length"
        " overlong clipped",
    ),
    "finish_reason": Column("reason", aliases="stop_reason"),
    "accepted": Column("flag", aliases="is_accepted accept kept valid"),
    "rejected": Column("flag", aliases="is_rejected dropped filtered"),
}

ALL = {n: replace(c, name=n, title=c.title or n) for n, c in _TABLE.items()}
"""Every column by its name."""
COLUMNS = {name: column for name, column in ALL.items() if column.help}
"""The columns of a batch, in the order in which a table shows them."""


def of_kind(*kinds: str) -> tuple[str, ...]:
    return tuple(name for name, column in COLUMNS.items() if column.kind in kinds)


TOKEN = re.compile(r"t[1-9][0-9]*")
"""The header of one token of the response mask: t1, t2, .."""
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def column_of(header: str) -> str:
    """The column under a header: 'mask' for t1, t2, .."""
    return "mask" if TOKEN.fullmatch(header) else header


def titled(header: str) -> str:
    """A header's title on the screen; a token's header is its title."""
    return COLUMNS[header].title if header in COLUMNS else header


def is_flag(header: str) -> bool:
    return COLUMNS[column_of(header)].kind in ("flag", "tokens")


def as_text(value: Any) -> str:
    """As text: 2.0 as '2', a list as numbers with spaces, None and NaN as ''."""
    if isinstance(value, (list, tuple)):
        return " ".join(map(as_text, value))
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        # A float64 holds each whole number of 15 digits (sys.float_info.dig).
        whole = value.is_integer() and abs(value) < 1e15
        return str(int(value)) if whole else repr(float(value))
    return "" if value is None else str(value)


def read(header: str, cell: Cell, width: int) -> Any:
    """The value of a cell: label str, number float, whole int, flag bool, list
    tuple of float, of `width` numbers unless the width is 0.

    Raises GradebookError naming the header.
    """
    kind = COLUMNS[column_of(header)].kind
    try:
        if kind != "list":
            return READERS[kind](cell)
        typed = parts(cell)
        if width and len(typed) != width:
            expected = f"{width} numbers separated by spaces, one per token"
            raise refuse(expected, len(typed))
        return tuple(number_of(token, text) for token, text in enumerate(typed))
    except GradebookError as error:
        raise error.at(key=header) from None


# Readers of one cell; each raises GradebookError saying why it cannot be read


def label(cell: Any, expected: str = "text") -> str:
    text = as_text(cell).strip()
    if not text:
        raise GradebookError(expected=expected, found="an empty cell")
    return text


COMMA = re.compile(r"[+-]?([0-9]*),([0-9]+)([eE][+-]?[0-9]+)?")
"""A number with a decimal comma, or one with its thousands apart."""


def with_point(text: str) -> str:
    """A number with a decimal comma, with a point; any other text as it is. A comma
    before three digits may part the thousands, so `1,234` stays.

    >>> with_point("1,5"), with_point("-0,125"), with_point("1,234")
    ('1.5', '-0.125', '1,234')
    """
    match = COMMA.fullmatch(text.strip().replace("\u2212", "-"))
    if not match:
        return text
    whole, decimals, exponent = match.groups()
    thousands = re.fullmatch("[1-9][0-9]{0,2}", whole) and len(decimals) == 3
    return text if thousands and not exponent else text.replace(",", ".")


def number(cell: Any) -> float:
    text = with_point(label(cell, "a number").replace("\u2212", "-"))
    if not NUMBER.fullmatch(text):
        # One comma is left only if it may part the thousands.
        point = " with a decimal point" if "," in text else ""
        raise refuse(f"a number{point}", as_text(cell))
    value = float(text)
    if not math.isfinite(value):
        raise refuse("a number below 1.8e308", as_text(cell))
    return value


def number_of(token: int, cell: Any) -> float:
    """The number of a token. Raises GradebookError that names the token."""
    try:
        return number(cell)
    except GradebookError as error:
        raise error.at(token=token) from None


def whole(cell: Any) -> int:
    value = number(cell)
    # So that a product of two such numbers, or a sum of many, fits int64.
    if value != int(value) or not 0 <= value < 2**31:
        raise refuse("a whole number of 0 or more", as_text(cell))
    return int(value)


def flag(cell: Any) -> bool:
    if isinstance(cell, bool):
        return cell
    word = label(cell, "true or false").lower()
    if word not in FLAGS:
        raise refuse("true or false", as_text(cell))
    return FLAGS[word]


def flags(cell: Any) -> list[bool]:
    """The flags of a mask that was typed in one cell: '110', '1 1 0' or '[1, 1, 0]'.
    Raises GradebookError.

    >>> flags("110"), flags("[1, 1, 0]")
    ([True, True, False], [True, True, False])
    """
    pieces = parts(cell)
    if len(pieces) == 1 and set(pieces[0]) <= {"0", "1"}:
        pieces = list(pieces[0])
    return [flag(piece) for piece in pieces]


def parts(cell: Cell) -> list[str]:
    """The numbers of a list's cell, as typed: between spaces, semicolons or commas, in
    brackets or without. Between spaces a comma can be a decimal one.

    >>> parts("[-0.5, -1]"), parts("-0,5 -1")
    (['-0.5', '-1'], ['-0.5', '-1'])
    """
    text = str(cell).strip().strip("[]()").replace(";", " ")
    pieces = text.split()
    if "," not in text:
        return pieces
    decimal = [with_point(piece) for piece in pieces]
    if len(pieces) > 1 and not any("," in piece for piece in decimal):
        return decimal
    return text.replace(",", " ").split()


def tidied(header: str, cell: str) -> str:
    """A cell of numbers as a table keeps it: with decimal points, a list between
    spaces."""
    kind = COLUMNS[column_of(header)].kind
    if kind == "list":
        return " ".join(parts(cell))
    return with_point(cell) if kind in ("number", "whole", "index") else cell


FLAGS = {
    **dict.fromkeys(("true", "1", "1.0", "yes", "t", "y"), True),
    **dict.fromkeys(("false", "0", "0.0", "no", "f", "n"), False),
}
"""The words that a flag accepts, in lower case."""
READERS: Mapping[str, Callable[[Any], Any]] = {
    "label": label,
    "number": number,
    "whole": whole,
    "index": whole,
    "flag": flag,
    "tokens": flag,
}
"""The reader of each kind of cell, except lists."""
