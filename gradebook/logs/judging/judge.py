"""Judge: names the computation of the logged advantages, for all steps and each.

evidence = gather(ruler, declaration)    computations and bugs, by steps
judgement = decide(evidence)             pure
framed(judgement)                        one row per step
"""

from __future__ import annotations

from gradebook.core.lazy_pandas import pd
from gradebook.logs.judging import gather
from gradebook.logs.judging.decide import Judgement, decide, everything_open
from gradebook.logs.judging.declaration import Declaration
from gradebook.logs.judging.fit import Ruler
from gradebook.logs.judging.frame import framed


def judge(
    ruler: Ruler, declaration: Declaration, tick: gather.Tick = gather.untold
) -> Judgement:
    """The verdict on a log's steps, as a whole and step by step. `tick` is called
    often."""
    return framed(decide(gather.gather(ruler, declaration, tick)))


def each_step(ruler: Ruler, declaration: Declaration) -> pd.DataFrame:
    """`gradebook.check`: each step judged by its own rows."""
    evidence = gather.gather_by_step(ruler, declaration)
    return framed(everything_open(evidence)).frame
