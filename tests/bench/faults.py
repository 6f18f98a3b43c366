"""Plants one fault at a time and asks whether its test fails.

    python tests/bench/faults.py                every fault
    python tests/bench/faults.py engine/ ui/    those of files that start so

Each fault is one line of production code that is changed, in a copy of the
project, and the test file that must notice. It prints what is not noticed, and
what is not planted because its text has gone or is there more than once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_BEHIND = (".git", ".venv", ".*_cache", ".hypothesis", "__pycache__")

# The file in gradebook/, the text, what it becomes, the test file in tests/.
FAULTS = """
core/formatting.py | SHOWS = 5e-4 | SHOWS = 5e-2 | core/test_formatting.py
core/formatting.py | (a > DUST) & (b < -DUST) | (a > DUST) & (b < DUST) | core/test_formatting.py
core/formatting.py | if size >= 1e9 or | if size >= 1e5 or | core/test_formatting.py
core/batch.py | self.prompt_index * (self.rows + 1) + rollout | self.prompt_index + rollout | core/test_batch.py
core/batch.py | mask.sum(-1) < mask.shape[-1] | mask.sum(-1) <= mask.shape[-1] | core/test_batch.py
core/settings.py | _number("a number of 0 or more", lambda value: value >= 0) | _number("a number of 0 or more", lambda value: value >= -1) | core/test_settings.py
core/settings.py | absent = kind.optional and | absent = | core/test_settings.py
engine/advantages.py | (groups.n - s.ddof).clamp(min=1) | groups.n.clamp(min=1) | engine/test_engine.py
engine/advantages.py | spread = torch.where(groups.n <= 1, 1, spread) | spread = torch.where(groups.n <= 2, 1, spread) | engine/test_engine.py
engine/advantages.py | mean = rest.sum(score) / rest.n.clamp(min=1) | mean = rest.sum(score) / (rest.n + 1) | engine/test_engine.py
engine/advantages.py | return rest.sum(score) / rest.n.clamp(min=1) | return rest.sum(score) / (rest.n + 1) | engine/test_engine.py
engine/grouping.py | return is_first(batch.rollout_index, credited) | return credited | engine/test_votes.py
engine/grouping.py | return enough & is_first(batch.prompt_index, enough) | return enough | engine/test_engine.py
engine/advantages.py | (variance + 1e-8).sqrt() | (variance + 1e-4).sqrt() | engine/test_engine.py
engine/advantages.py | divisor = (spread * spread + eps).sqrt() | divisor = spread + eps | engine/test_engine.py
engine/loss.py | else gap.exp() - gap - 1 | else gap.exp() - gap | engine/test_loss.py
engine/grouping.py | s.skip_flat == "training" and s.evaluation | s.skip_flat == "training" | engine/test_loss.py
engine/loss.py | share = share * learns.sum(-1).clamp(min=1) | share = share * batch.mask.shape[-1] | engine/test_loss.py
bugs/partial_groups.py | (batch.rows_per_step // size)[step] | (batch.rows_per_step // size + 1)[step] | bugs/test_bugs.py
bugs/missing_parentheses.py | credited, score - baseline / scale | credited, (score - baseline) / scale | engine/test_golden.py
bugs/padded_mean.py | (batch.rows_per_step * batch.width)[step] | (batch.rows_per_step * batch.width + 1)[step] | engine/test_golden.py
bugs/double_normalization.py | (v.sqrt() + 1e-9) | (v.sqrt() + 1) | engine/test_engine.py
bugs/__init__.py | drops=getattr(module, "DROPS", ()), | drops=(), | bugs/test_combinations.py
cases/table.py | key=lambda header: int(header[1:]) | key=str | cases/test_table.py
cases/edits.py | row = max(0, min(row, state.rows - 1)) | row = max(0, min(row, state.rows)) | cases/test_edits.py
cases/link.py | if text != then[key]} | if text == then[key]} | cases/test_link.py
cases/link.py | for place in range(count)]: | for place in range(count + 1)]: | cases/test_link.py
bugs/__init__.py | counted=counted_without(frozenset(drops)) | counted=together[0].faulty | bugs/test_combinations.py
analysis/comparison.py | leaks(batch, faulty - correct, advantage) | leaks(batch, correct - faulty, advantage) | analysis/test_influence.py
analysis/comparison.py | return torch.where(siblings.any(-1), value, 0) | return torch.where(siblings.any(-1), value, 1) | analysis/test_influence.py
analysis/comparison.py | peers = peers & (torch.arange(batch.rows) != row) | peers = peers & (torch.arange(batch.rows) > row) | analysis/test_comparison.py
analysis/challenges.py | gap = max(low - value, value - high) | gap = max(value - low, high - value) | analysis/test_challenges.py
analysis/challenges.py | edits.reorder or survivors == sorted(survivors), | True, | analysis/test_challenges.py
analysis/formula.py | low, high = int(y.argmin()), int(y.argmax()) | low, high = 0, int(y.argmax()) | analysis/test_formula.py
analysis/laws.py | new = {row["row"]: row["reward"] * 10 for row in rows} | new = {row["row"]: row["reward"] * 9 for row in rows} | analysis/test_laws.py
analysis/formula.py | (start + n, line.rstrip()) | (start + n + 1, line.rstrip()) | analysis/test_formula.py
training/study.py | t_quantile(0.975, count - 1) * error | t_quantile(0.95, count - 1) * error | training/test_studies.py
training/study.py | if self.difference - self.half_width > 0: | if self.difference > 0: | training/test_studies.py
training/environments.py | stops[..., environment.solvable, -1].mean(-1) | stops[..., -1].mean(-1) | training/test_consequences.py
training/environments.py | late = 2 * failure | late = failure | training/test_consequences.py
training/train.py | .abs() <= math.log(REJECTED) | .abs() >= math.log(REJECTED) | training/test_consequences.py
output/axes.py | if sizes[-1] <= SQUASHED * typical: | if sizes[-1] <= SQUASHED * sizes[0]: | output/test_figures.py
output/panels.py | math.copysign(math.log10(1 + abs(value)), value) | math.log10(1 + abs(value)) | output/test_figures.py
output/csv_file.py | return FORMULA.sub | return re.compile("$^").sub | output/test_export.py
output/rendering.py | text = json.dumps(value, ensure_ascii=False) | text = json.dumps(value) | output/test_export.py
output/scenario_file.py | [wrong, right] if differs else [right, wrong] | [right, wrong] if differs else [wrong, right] | output/test_export.py
output/pytest_file.py | tolerance = min(LOOSE, wrong / 10) if catches else LOOSE | tolerance = LOOSE | output/test_pytest_file.py
logs/surfaces.py | f"%{ord(c):02X}" | f"%{ord(c):03X}" | logs/test_check_cli.py
logs/surfaces.py | {0: "", 1: "failure", 2: partly} | {0: "", 1: partly, 2: "failure"} | logs/test_check_cli.py
logs/read/log_columns.py | np.where(flags == keeps, whole, flags * 0) | np.where(flags != keeps, whole, flags * 0) | logs/test_asks.py
logs/read/rows.py | near if (bad & unknown).any() else bad | bad | logs/test_logs_readers.py
logs/trl_layout.py | cut = max(cuts | cut = min(cuts | logs/test_check_trl.py
logs/recording.py | ["step", "rank"], keep="last" | ["step", "rank"], keep="first" | logs/recording/test_recorder.py
logs/guard.py | return j.verdict in ("other", "suspect", "none fits") | return j.verdict in ("other", "suspect") | logs/test_guard.py
logs/judging/declaration.py | "scale": c.scale, | "scale": c.baseline, | logs/test_asks.py
logs/judging/space.py | {"rollout": rollout[original]} | {"rollout": rollout} | logs/test_space.py
logs/judging/space.py | values.nan_to_num(0, torch.inf, -torch.inf) | values | logs/test_space.py
logs/judging/proof.py | elif record.proof == "declaration": | elif record.proof == "nothing": | logs/test_asks.py
trainers/examination.py | return 0 if self.computes else 2 | return 0 | trainers/test_probe.py
trainers/child.py | if shape != [len(group) for group in rewards]: | if False: | trainers/test_probe.py
trainers/trl.py | count + 1 if before == step else 0 | count + 1 if before != step else 0 | trainers/test_trl.py
classroom/plan.py | if minutes < least: | if minutes > least: | classroom/test_plan.py
classroom/room.py | _count(database, Seat, *learners) < most | _count(database, Seat, *learners) <= most | classroom/test_room.py
classroom/room.py | if not LOOKED <= choice < MOST_CHOICES: | if not LOOKED <= choice <= MOST_CHOICES: | classroom/test_room.py
ui/parts/drafts.py | return case in self.hidden or case not in self.guesses | return case not in self.guesses | ui/test_drafts.py
classroom/room.py | others = [name for name in room.revealed if name != question] | others = list(room.revealed) | classroom/test_room.py
classroom/room.py | room.revealed = [name for name in room.revealed if name != question] | room.revealed = list(room.revealed) | classroom/test_room.py
ui/parts/words.py | return html.escape(str(text)) | return str(text) | ui/test_words.py
ui/security.py | if session else MOST_BODY): | if session else MOST_OF_SESSION): | ui/test_security.py
ui/board/view.py | return [float(f"{x:.7g}") | return [float(f"{x:.2g}") | ui/test_board.py
ui/parts/stages.py | zip(names, (maps.correct.tolist(), maps.faulty.tolist())) | zip(names, (maps.faulty.tolist(), maps.correct.tolist())) | ui/test_page_controls.py
"""


def main() -> None:
    starts = tuple(sys.argv[1:]) or ("",)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "gradebook"
        skip = shutil.ignore_patterns(*LEFT_BEHIND)
        shutil.copytree(ROOT, copy, ignore=skip, symlinks=True)
        planted = noticed = 0
        healthy: dict[str, bool] = {}
        for line in FAULTS.strip().splitlines():
            path, old, new, test = (part.strip() for part in line.split(" | "))
            if not path.startswith(starts):
                continue
            if test not in healthy:
                healthy[test] = passes(copy, test)
            answer = tried(copy, path, old, new, test) if healthy[test] else "RED"
            planted += answer not in ("gone", "twice")
            noticed += answer == "noticed"
            print(f"{answer:12} {path}: {old}", flush=True)
    print(f"{noticed} of {planted} faults are noticed.")


def tried(copy: Path, path: str, old: str, new: str, test: str) -> str:
    """'noticed', 'NOT NOTICED', 'gone' if the text is not there, or 'twice' if it is
    there more than once. ('RED' is a fault whose test fails without it.)"""
    file = copy / "gradebook" / path
    text = file.read_text("utf-8") if file.exists() else ""
    if text.count(old) != 1:
        return "twice" if old in text else "gone"
    file.write_text(text.replace(old, new), "utf-8")
    still = passes(copy, test)
    file.write_text(text, "utf-8")
    return "NOT NOTICED" if still else "noticed"


def passes(copy: Path, test: str) -> bool:
    """The test file passes in the copy."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", f"tests/{test}"]
    command += ["-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True)
    return done.returncode == 0


if __name__ == "__main__":
    main()
