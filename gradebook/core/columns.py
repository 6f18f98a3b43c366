"""The one table of columns: what a batch, a table on a page, a scenario file, a
link, a recording and a log call a column, and what it holds.

A column of a batch is also a field of `Batch`. One that logs and recordings
have is also read in logs/read/canonical.py, logs/candidates/logged_steps.py and
logs/recording/intake.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType


@dataclass(frozen=True)
class Column:
    """What is known about one column.

    name     what a batch, a scenario, a link and a recording call it
    kind     label, number, whole, flag, list (a number a token) or tokens (a
             flag a token)
    help     one sentence for a person who meets the column for the first time;
             "" where only logs have the column
    aliases  what logs call it, likeliest first; the name first of all, unless it
             stands among them
    title    its heading; the name, unless it is another
    default  what a missing cell is, where that does not depend on the row
    """

    name: str
    kind: str
    help: str = ""
    aliases: str = ""
    title: str = ""
    default: str | bool = ""

    @property
    def names(self) -> tuple[str, ...]:
        """What logs call the column, likeliest first."""
        aliases = tuple(self.aliases.split())
        return aliases if self.name in aliases else (self.name, *aliases)


_TABLE = (
    Column(
        "prompt",
        "label",
        "Rows with the same prompt are one group.",
        "uid group_id group group_index prompt_id prompt_index problem_id question_id"
        " query_id task_id instance_id prompt prompts input inputs question problem"
        " query instruction",
        default="A",
    ),
    Column(
        "reward",
        "number",
        "The rollout's reward, a number with a decimal point.",
        "rewards total_reward final_reward reward_sum outcome_reward reward_score"
        " score scores seq_reward task_reward token_level_scores token_level_rewards",
        default="0",
    ),
    Column(
        "scored",
        "flag",
        "A reward function gave the row a value. The reward of a row that is not"
        " scored is a filler.",
        "is_scored has_reward",
        default=True,
    ),
    Column(
        "rollout",
        "label",
        "Rows of one prompt with the same label are pieces of one rollout.",
        "rollout_id trajectory_id sample_id",
    ),
    Column(
        "rank",
        "whole",
        "The number of the process that holds the row.",
        "process dp_rank cp_rank",
        default="0",
    ),
    Column(
        "text",
        "label",
        "What the prompt says, as the trainer sees it.",
        "prompt_text question_text",
    ),
    Column(
        "eos",
        "flag",
        "The row ended with an end-of-sequence token.",
        "has_eos ended_with_eos finished is_finished terminated completed",
        title="EOS",
        default=True,
    ),
    Column(
        "step",
        "whole",
        "The training step that the row belongs to.",
        "global_step global_steps training_step train_step rollout_step iteration"
        " iter update",
        default="0",
    ),
    Column(
        "steps",
        "whole",
        "Transitions of the row's episode.",
        "num_steps n_steps episode_length episode_len episode_steps num_turns n_turns"
        " turns transitions",
    ),
    Column(
        "kept_steps",
        "whole",
        "Transitions that are left after subsampling.",
        "kept_transitions num_kept_steps subsampled_steps",
        title="kept",
    ),
    Column(
        "mask",
        "tokens",
        "The tokens that the row learns from.",
        "response_mask completion_mask loss_mask action_mask",
        title="response mask",
    ),
    Column(
        "logp",
        "list",
        "Log-probability of each token under the policy, separated by spaces.",
    ),
    Column(
        "ref_logp",
        "list",
        "Log-probability of each token under the reference model, separated by spaces.",
        title="ref logp",
    ),
    Column(
        "advantage",
        "number",
        aliases="advantages adv advs seq_advantage advantage_mean",
    ),
    Column(
        "length",
        "whole",
        aliases="lengths response_length response_len response_tokens"
        " completion_length completion_len completion_tokens output_length"
        " output_tokens num_tokens n_tokens num_generated_tokens gen_len seq_len",
    ),
    Column(
        "truncated",
        "flag",
        aliases="is_truncated no_eos seq_no_eos seq_no_eos_mask hit_max_length"
        " overlong clipped",
    ),
    Column("finish_reason", "label", aliases="stop_reason"),
    Column("accepted", "flag", aliases="is_accepted accept kept valid"),
    Column("rejected", "flag", aliases="is_rejected dropped filtered"),
)

ALL: Mapping[str, Column] = MappingProxyType(
    {c.name: replace(c, title=c.title or c.name) for c in _TABLE}
)
"""Every column by its name."""
COLUMNS: Mapping[str, Column] = MappingProxyType(
    {name: column for name, column in ALL.items() if column.help}
)
"""The columns of a batch, in the order in which a table shows them."""


def of_kind(*kinds: str) -> tuple[str, ...]:
    """The names of a batch's columns of these kinds."""
    return tuple(name for name, column in COLUMNS.items() if column.kind in kinds)
