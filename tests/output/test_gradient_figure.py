"""The gradient at each token, drawn."""

import plotly.graph_objects as go
import pytest
import torch

import gradebook
from gradebook.analysis.comparison import compare
from gradebook.output.figures import CORRECT, FAULTY, gradient_figure


def compared(bug="micro_batch_means", reference=None, beta=0.0):
    """Two winners of one token, two losers of three, two rows a pass."""
    logp = torch.full((4, 3), -1.0)
    batch = gradebook.Batch(
        prompt=torch.tensor([0, 0, 0, 0]),
        reward=torch.tensor([1.0, 1.0, 0.0, 0.0]),
        mask=torch.tensor([[1, 0, 0], [1, 0, 0], [1, 1, 1], [1, 1, 1]]) > 0,
        logp=logp,
        ref_logp=reference and logp + torch.tensor(reference),
        settings=gradebook.Settings(
            loss="dapo", eps=1e-6, ddof=1, micro_batch=2, beta=beta
        ),
    )
    return compare(gradebook.bug(bug), batch)


def bars(figure):
    """Both engines' bars: {(row, token): height in lines, upwards}."""
    return [
        {(y, x): -h for x, y, h in zip(t.x, t.base, t.y)}
        for t in figure.data
        if t.type == "bar"
    ]


def test_bars_are_as_long_as_gradients_and_masked_tokens_have_none():
    """All eight tokens weigh 1/8. The faulty passes have 2 and 6 tokens, and
    each is half of the loss: 1/4 and 1/12 a token."""
    figure = go.Figure(gradient_figure(compared()))
    correct, faulty = bars(figure)
    placed = {(0, 1), (1, 1), *((r, t) for r in (2, 3) for t in (1, 2, 3))}
    assert set(correct) == set(faulty) == placed
    longest = -faulty[0, 1]
    assert 0 < longest < 0.5
    assert {p: v / longest for p, v in correct.items()} == pytest.approx(
        {p: -0.5 if p[0] < 2 else 0.5 for p in placed}
    )
    assert {p: v / longest for p, v in faulty.items()} == pytest.approx(
        {p: -1 if p[0] < 2 else 1 / 3 for p in placed}
    )


def test_a_rows_gradient_stands_beside_it_in_digits():
    figure = go.Figure(gradient_figure(compared(), names=("a", "b")))
    notes = [note.text for note in figure.layout.annotations]
    # 0.866 / 8 on one side, 0.866 / 4 and 0.866 / 12 on the other.
    correct = ["\u22120.108"] * 2 + ["0.108"] * 2
    faulty = ["\u22120.217"] * 2 + ["0.072"] * 2
    assert notes == ["<b>a</b>", *correct, "<b>b</b>", *faulty]


def test_rows_that_differ_are_marked_and_the_engines_have_their_looks():
    figure = go.Figure(gradient_figure(compared(), row=2, prompts="ABCD"))
    assert [text[-1] for text in figure.layout.yaxis.ticktext] == ["≠"] * 4
    assert figure.layout.yaxis.ticktext[2] == "<b>▸ 2 C</b> ≠"
    assert len(figure.layout.shapes) == 4
    filled, open_ = (t.marker for t in figure.data if t.type == "bar")
    assert filled.color == CORRECT
    assert open_.color == "rgba(0,0,0,0)" and open_.line.color == FAULTY


def test_tokens_of_other_gradients_show_the_least_and_the_greatest():
    """A KL term of its own at each token: policy -A/8, KL 0.1 (1 - e^d)/8."""
    found = compared("fan_out", [0.0, 1.0, -2.0], beta=0.1)
    figure = go.Figure(gradient_figure(found))
    # Row 2: 0.108253 and 0.1 (1 - e) / 8 = -0.021479, 0.1 (1 - e^-2) / 8
    # = +0.010808.
    assert figure.layout.annotations[3].text == "0.087<br>to 0.119"
    assert not figure.layout.shapes


def test_without_log_probabilities_there_is_no_gradient_to_draw():
    batch = gradebook.Batch(
        prompt=torch.tensor([0, 0]), reward=torch.tensor([1.0, 0.0])
    )
    with pytest.raises(ValueError, match="log-probabilities"):
        gradient_figure(compare(gradebook.bug("fan_out"), batch))
