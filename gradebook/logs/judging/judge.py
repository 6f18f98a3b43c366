"""Judge: names the computation of the logged advantages, for all steps and each.

evidence = gather(ruler, declaration)    computations and bugs, by steps
judgement = decide(evidence)             on the log; pure
of_steps = by_step(judgement)            on each step alone; pure
framed(judgement, of_steps)              one row per step
"""

from __future__ import annotations

from gradebook.core.lazy_pandas import pd
from gradebook.logs.judging import gather
from gradebook.logs.judging.decide import Judgement, by_step, decide, everything_open
from gradebook.logs.judging.declaration import Declaration
from gradebook.logs.judging.fit import Ruler
from gradebook.logs.judging.frame import framed


def judge(
    ruler: Ruler, declaration: Declaration, tick: gather.Tick = gather.untold
) -> Judgement:
    """The judgement on a log's steps, as a whole and step by step. `tick` is called
    often, so that a caller can show progress or cancel."""
    judgement = decide(gather.gather(ruler, declaration, tick))
    return framed(judgement, by_step(judgement))


def each_step(ruler: Ruler, declaration: Declaration) -> pd.DataFrame:
    """`gradebook.check`: each step judged by its own rows."""
    evidence = gather.gather_by_step(ruler, declaration)
    judgement = everything_open(evidence)
    return framed(judgement, by_step(judgement)).frame
