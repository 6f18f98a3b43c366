"""TRL's GRPOTrainer and RLOOTrainer train a tiny random model with recorder and guard.

Runs in the virtual environment of trl.txt; .ci/run makes it.
"""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pandas as pd
import pytest

trl = pytest.importorskip("trl")
pytestmark = pytest.mark.filterwarnings("default")

import torch  # noqa: E402
from datasets import Dataset  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402
from transformers import (  # noqa: E402
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

import gradebook  # noqa: E402
from gradebook.core.errors import GradebookError  # noqa: E402
from gradebook.logs.log import check_log  # noqa: E402
from gradebook.trainers.trl import Watched, declared  # noqa: E402

NUMBERS = ["one", "two", "three", "four", "five", "six"]
WORDS = ["[PAD]", "[EOS]", "[UNK]", *NUMBERS]
PROMPTS = ["one two", "three", "four five six", "two six"]


def model_and_tokenizer():
    """One layer and nine words, both made here."""
    words = {word: at for at, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(WORDS),
        n_positions=64,
        n_embd=16,
        n_layer=1,
        n_head=2,
        bos_token_id=1,
        eos_token_id=1,
        pad_token_id=0,
    )
    return GPT2LMHeadModel(config), PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        eos_token="[EOS]",
        unk_token="[UNK]",
        padding_side="left",
    )


def sixes(completions, **_):
    return [float(text.count("six")) for text in completions]


def brevity(completions, **_):
    return [1.0 / (1 + len(text.split())) for text in completions]


def unsure(completions, **_):
    """No reward for a completion that begins with "one"."""
    return [
        None if text.startswith("one") else float(len(text)) for text in completions
    ]


class Logs:
    """What TRL logs of each training generation."""

    def _generate_and_score_completions(self, inputs):
        training = self.model.training
        output = super()._generate_and_score_completions(inputs)
        if training:
            rows = len(output["advantages"]) * self.accelerator.num_processes
            logged = list(self._logs["advantages"])[-rows:]
            self.__dict__.setdefault("logged", []).append(logged)
        return output


class Logging(Logs, trl.GRPOTrainer):
    pass


class Faulty(Logging):
    """The trainer with every row's advantage at another row."""

    def _generate_and_score_completions(self, inputs):
        output = super()._generate_and_score_completions(inputs)
        output["advantages"] = output["advantages"].roll(1)
        return output


class Trainer(Watched, Logging):
    config = trl.GRPOConfig


class RlooTrainer(Watched, Logs, trl.RLOOTrainer):
    config = trl.RLOOConfig


class RlooTables(RlooTrainer):
    """TRL writes no file of RLOO's rows: the table that it sends to W&B, as files."""

    def log(self, *args, **more):
        table = {
            "step": [self.state.global_step] * len(self._logs["prompt"]),
            "prompt": self._logs["prompt"],
            "completion": self._logs["completion"],
            **self._logs["rewards"],
            "advantage": self._logs["advantages"],
        }
        folder = Path(self.args.output_dir) / "completions"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"completions_{self.state.global_step:05d}.parquet"
        if table["prompt"]:
            pd.DataFrame(table).to_parquet(folder / name)
        super().log(*args, **more)


class FaultyTrainer(Watched, Faulty):
    config = trl.GRPOConfig


def trainer(folder, functions=(sixes, brevity), kind=Trainer, **changed):
    settings = {
        "num_generations": 4,
        "per_device_train_batch_size": 8,
        "max_completion_length": 6,
        "max_steps": 3,
        "learning_rate": 1e-3,
        "logging_steps": 1,
        "log_completions": True,
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "save_strategy": "no",
        "seed": 1,
    }
    args = kind.config(output_dir=str(folder), **(settings | changed))
    model, tokenizer = model_and_tokenizer()
    if issubclass(kind, RlooTrainer):  # its reference model is loaded from a folder
        model.save_pretrained(folder / "model")
        model = GPT2LMHeadModel.from_pretrained(folder / "model")
    rows = Dataset.from_dict({"prompt": PROMPTS * 4})
    return kind(
        model=model,
        reward_funcs=list(functions),
        args=args,
        train_dataset=rows,
        eval_dataset=rows.select(range(4)),
        processing_class=tokenizer,
    )


def recorded(folder):
    return gradebook.recording([folder]).frame()


@pytest.mark.parametrize(
    "changed, generations",
    [
        ({"scale_rewards": "group"}, 3),
        ({"scale_rewards": "batch", "reward_weights": [2.0, -0.5]}, 3),
        ({"scale_rewards": "none"}, 3),
        ({"eval_strategy": "steps", "eval_steps": 1}, 3),
        ({"gradient_accumulation_steps": 2}, 3),
        # Two generations for each of the three optimizer steps,
        ({"gradient_accumulation_steps": 4, "steps_per_generation": 2}, 6),
        # and one generation for two of them.
        ({"num_iterations": 2, "max_steps": 4}, 2),
    ],
    ids=str,
)
def test_what_is_recorded_is_what_trl_logs(tmp_path, changed, generations):
    one = trainer(tmp_path / "trl", **changed)
    one.watch(tmp_path / "run", guard="raise", strict=True)
    before = [p.detach().clone() for p in one.model.parameters()]
    one.train()
    moved = zip(before, one.model.parameters())
    assert any(not torch.equal(a, b) for a, b in moved)  # it really trained
    rows = recorded(tmp_path / "run")
    steps = [list(part) for _, part in rows.groupby("step")["advantage"]]
    assert steps == one.logged
    assert len(steps) == generations
    verdict = check_log([tmp_path / "run"])
    assert verdict.verdict == "correct", verdict.sentence
    assert verdict.declared == declared(one.args)


def test_the_files_that_trl_writes_hold_the_same_rows(tmp_path):
    one = trainer(tmp_path / "trl")
    one.watch(tmp_path / "run", strict=True)
    one.train()
    files = sorted((tmp_path / "trl").rglob("completions_*.parquet"))
    written = pd.concat([pd.read_parquet(path) for path in files])
    rows = recorded(tmp_path / "run")
    assert rows["advantage"].tolist() == written["advantage"].tolist()
    total = written["sixes"] + written["brevity"]
    assert rows["reward"].tolist() == pytest.approx(total.tolist())
    words = [len(text.split()) for text in written["completion"]]
    # A completion that ends early has one token more, [EOS].
    assert all(length >= count for length, count in zip(rows["length"].tolist(), words))
    asked = declared(one.args)
    of_run = check_log([tmp_path / "run"], declared=asked)
    of_trl = check_log([tmp_path / "trl"], declared=asked)
    assert of_run.exit_code == of_trl.exit_code == 0
    assert of_run.verdict == of_trl.verdict == "correct"
    assert of_run.estimator == of_trl.estimator == "grpo"
    assert of_run.steps_judged == of_trl.steps_judged == 3


@pytest.mark.parametrize(
    "changed, weights",
    [
        ({"reward_weights": [2.0, -0.5]}, (2.0, -0.5)),
        ({"reward_weights": [0.7, 0.3], "scale_rewards": "batch"}, (0.7, 0.3)),
        ({"reward_weights": [0.7, 0.3], "scale_rewards": "none"}, (0.7, 0.3)),
        ({"mask_truncated_completions": True}, (1.0, 1.0)),
        (
            {"mask_truncated_completions": True, "reward_weights": [1.0, 3.0]},
            (1.0, 3.0),
        ),
    ],
    ids=str,
)
def test_a_recording_and_trls_files_get_the_same_verdict(tmp_path, changed, weights):
    """The files say neither which completions were truncated nor the weights."""
    one = trainer(tmp_path / "trl", **changed)
    one.watch(tmp_path / "run", strict=True)
    one.train()
    is_masked = "mask_truncated_completions" in changed
    rows = recorded(tmp_path / "run")
    assert (rows["length"].to_numpy() == 0).any() == is_masked
    asked = declared(one.args)
    of_run = check_log([tmp_path / "run"])
    of_trl = check_log([tmp_path / "trl"], declared=asked)
    assert_agreement(of_run, of_trl)
    assert of_trl.weights == weights
    undeclared = check_log([tmp_path / "trl"])
    assert undeclared.verdict == "correct"
    assert undeclared.weights == weights and undeclared.estimator == of_run.estimator


def test_rewards_that_are_normalized_each_are_read_from_trls_files(tmp_path):
    """A recording has one reward a row, so it is refused."""
    changed = {"multi_objective_aggregation": "normalize_then_sum"}
    one = trainer(tmp_path / "trl", reward_weights=[1.0, 0.5], **changed)
    with pytest.raises(GradebookError, match="multi_objective_aggregation"):
        one.watch(tmp_path / "run")
    one.train()
    found = check_log([tmp_path / "trl"])
    assert (found.verdict, found.estimator) == ("correct", "gdpo")
    assert found.weights == (1.0, 0.5)


def assert_agreement(of_run, of_trl):
    """Both logs are as declared, by the same computation in every step."""
    assert (of_run.verdict, of_run.exit_code) == ("correct", 0), of_run.sentence
    assert (of_trl.verdict, of_trl.exit_code) == ("correct", 0), of_trl.sentence
    assert of_run.estimator == of_trl.estimator
    assert of_run.steps_judged == of_trl.steps_judged == 3


@pytest.mark.parametrize(
    "changed, estimator",
    [
        ({}, "rloo"),  # TRL's own beta, 0.05
        ({"beta": 0.0, "normalize_advantages": True}, "leave_one_out/advantage_std"),
        ({"beta": 2.0, "reward_clip_range": (0.2, 1.0)}, "rloo"),
    ],
    ids=str,
)
def test_rloo_is_recorded_with_the_reward_that_it_compares(
    tmp_path, changed, estimator
):
    one = trainer(tmp_path / "trl", kind=RlooTrainer, learning_rate=0.02, **changed)
    one.watch(tmp_path / "run", guard="raise", strict=True)
    one.train()
    rows = recorded(tmp_path / "run")
    steps = [list(part) for _, part in rows.groupby("step")["advantage"]]
    assert steps == one.logged
    verdict = check_log([tmp_path / "run"])
    assert (verdict.exit_code, verdict.verdict) == (0, "correct"), verdict.sentence
    assert estimator in (verdict.estimator, *verdict.ties)
    assert verdict.declared == declared(one.args)


@pytest.mark.parametrize("masked", [False, True])
def test_a_recording_and_trls_table_of_rloo_get_the_same_verdict(tmp_path, masked):
    changed = {"beta": 0.0, "mask_truncated_completions": masked}
    one = trainer(tmp_path / "trl", kind=RlooTables, **changed)
    one.watch(tmp_path / "run", strict=True)
    one.train()
    lengths = recorded(tmp_path / "run")["length"].to_numpy()
    assert (lengths == 0).any() == masked
    of_run = check_log([tmp_path / "run"])
    of_trl = check_log([tmp_path / "trl" / "completions"], declared=declared(one.args))
    assert_agreement(of_run, of_trl)
    assert of_run.estimator == "rloo" and of_trl.weights == (1.0, 1.0)


def test_a_table_of_rloo_lacks_the_kl_that_the_recording_has(tmp_path):
    """TRL's default: 0.05 times the KL is taken off the reward."""
    one = trainer(tmp_path / "trl", kind=RlooTables, learning_rate=0.02, max_steps=10)
    one.watch(tmp_path / "run", strict=True)
    one.train()
    assert check_log([tmp_path / "run"]).estimator == "rloo"
    table = [tmp_path / "trl" / "completions"]
    found = check_log(table, weights=(1, 1))
    assert (found.verdict, found.left_over) == ("none fits", "kl")
    # The KL also keeps the weights from being solved.
    found = check_log(table)
    assert (found.verdict, found.exit_code) == ("cannot tell", 2)
    assert "does not determine the weights" in found.sentence
    assert found.near.startswith("If all weights are 1: In each prompt")
    assert "A KL term in the reward does that" in found.near


def test_the_rows_of_two_processes_are_recorded_together(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run"]
    command += ["--nproc-per-node=2", "--master-addr=127.0.0.1"]
    port = 29500 + os.getpid() % 1000
    command += [f"--master-port={port}", __file__, str(tmp_path)]
    paths = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = recorded(tmp_path / "run")
    steps = [list(part) for _, part in rows.groupby("step")["advantage"]]
    assert steps == json.loads((tmp_path / "logged.json").read_text())
    assert len(steps[0]) == 16
    assert rows["rank"].tolist() == 3 * ([0] * 8 + [1] * 8)
    assert check_log([tmp_path / "run"]).verdict == "correct"


def one_of_two_processes(folder):
    """What each of them runs: one prompt's rows are on both."""
    one = trainer(folder / "trl", scale_rewards="batch", num_generations=16)
    one.watch(folder / "run", guard="raise", strict=True)
    one.train()
    if one.accelerator.is_main_process:
        (folder / "logged.json").write_text(json.dumps(one.logged))


def test_rows_that_no_function_scored_are_unscored(tmp_path):
    one = trainer(tmp_path / "trl", [unsure], max_steps=4)
    one.watch(tmp_path / "run", guard="raise", strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TRL warns of each such row
        one.train()
    rows = recorded(tmp_path / "run")
    none = rows["reward"].isna()
    assert none.any() and (rows["advantage"][none] == 0).all()
    assert check_log([tmp_path / "run"]).verdict == "correct"


def test_the_guard_is_called_for_advantages_of_other_rows(tmp_path):
    findings = []
    one = trainer(tmp_path, kind=FaultyTrainer, log_completions=False, max_steps=1)
    one.watch(guard=findings.append)
    one.train()
    (finding,) = findings
    assert finding.step == 0 and finding.verdict == "none fits"


if __name__ == "__main__":
    one_of_two_processes(Path(sys.argv[1]))
