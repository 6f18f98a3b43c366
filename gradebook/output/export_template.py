"""The fixed parts of a generated test file. `export` fills them in."""

HEAD = '''\
"""A regression test for {bug}, written by Gradebook.

It needs torch and pytest, and nothing else. Fill in the function under
"Your trainer", run pytest on this file, and keep it in your repository.
The batch and its settings stand at the end; the report is at LINK.
"""

import math

import pytest
import torch

LINK = {link}
RULE = {rule}
NAN, INF = math.nan, math.inf


# Your trainer


'''

ARGUMENTS = """\
    rewards        float64 [R] the row's reward
    prompt_ids     int64 [R] rows with the same number share a prompt
    response_mask  bool [R, T] True at the tokens of the response that train
    eos            bool [R] the row ended with EOS
    steps          int64 [R] transitions of the row's episode
    kept_steps     int64 [R] transitions left after subsampling
    settings       dict of conventions (estimator, ddof, eps, group_size,
                   ..), as in the batch at the end of this file
"""

ADVANTAGES = (
    '''\
def advantages(
    rewards,
    prompt_ids,
    response_mask,
    eos,
    steps,
    kept_steps,
    settings,
):
    """Your advantages for the R rows of one training step: float [R].

'''
    + ARGUMENTS
    + '''\
    """
    # For example: return my_trainer.compute(rewards, prompt_ids)
    raise NotImplementedError("call your trainer's function here")


# How this file calls it


def values(columns, settings):
    """One advantage a row; your function sees one step at a time."""
    found = [NAN] * len(columns["reward"])
    for rows, inputs in inputs_of_steps(columns, settings):
        result = torch.as_tensor(advantages(**inputs)).detach().double()
        if result.shape != (len(rows),):
            pytest.fail(
                f"advantages returned shape {list(result.shape)},"
                f" not [{len(rows)}]"
            )
        for row, value in zip(rows, result.tolist()):
            found[row] = value
    return found


'''
)

LOSS = (
    '''\
def loss(
    logp,
    ref_logp,
    rewards,
    prompt_ids,
    response_mask,
    eos,
    steps,
    kept_steps,
    settings,
):
    """Your loss of one training step: a scalar that torch can
    differentiate by `logp`.

    logp           float64 [R, T] log-probabilities of the policy, which
                   are the old policy's too: the step is on policy
    ref_logp       float64 [R, T] those of the reference
'''
    + ARGUMENTS
    + '''\
    """
    # For example: return my_trainer.compute_loss(logp, ref_logp, ..)
    raise NotImplementedError("call your trainer's function here")


# How this file calls it


def values(columns, settings):
    """d loss / d logp, a list of T numbers a row; your function sees one
    step at a time."""
    found = [[] for _ in columns["reward"]]
    for rows, inputs in inputs_of_steps(columns, settings):
        for name in ("logp", "ref_logp"):
            cells = [columns[name][row] for row in rows]
            inputs[name] = torch.tensor(cells, dtype=torch.float64)
        inputs["logp"].requires_grad_()
        result = loss(**inputs)
        if not result.requires_grad:
            pytest.fail("the loss cannot be differentiated by logp")
        (gradient,) = torch.autograd.grad(
            result.sum(), inputs["logp"], allow_unused=True
        )
        if gradient is None:
            gradient = torch.zeros_like(inputs["logp"])
        for row, value in zip(rows, gradient.tolist()):
            found[row] = value
    return found


'''
)

INPUTS = '''\
def inputs_of_steps(columns, settings):
    """The rows of each training step, and your function's arguments."""
    for step in sorted(set(columns["step"])):
        rows = [r for r, s in enumerate(columns["step"]) if s == step]
        names = {columns["prompt"][row]: 0 for row in rows}
        names = {name: place for place, name in enumerate(names)}

        def column(name, dtype):
            cells = [columns[name][row] for row in rows]
            return torch.tensor(cells, dtype=dtype)

        labels = [names[columns["prompt"][row]] for row in rows]
        yield rows, {
            "rewards": column("reward", torch.float64),
            "prompt_ids": torch.tensor(labels, dtype=torch.int64),
            "response_mask": column("mask", torch.bool),
            "eos": column("eos", torch.bool),
            "steps": column("steps", torch.int64),
            "kept_steps": column("kept_steps", torch.int64),
            "settings": dict(settings),
        }


def by_column(names, rows):
    """Rows of cells as columns."""
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


# What must hold


'''

TEST = '''\


def test_{law}_{batch}():
    """{says}"""
    most, what = {law}({arguments})
    assert most <= {tolerance}, f"{{what}}. {{RULE}} {{LINK}}"
'''
