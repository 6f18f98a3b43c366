"""What must hold of any trainer, whatever its conventions, as plain Python.

A generated test file holds the source of these functions, so they import
nothing but `math` and never Gradebook. Each calls a trainer through `call`,
which takes a batch as columns (lists by name) and gives a value a row, a
number or a list of numbers; each returns the largest violation, as a share
of the values' size, and a sentence that names it.
"""

import math


def gap(a, b):
    """How far two values lie apart, as a share of their size, from 1 up.
    Infinite where only one of them is a number."""
    if isinstance(a, list):
        return max((gap(x, y) for x, y in zip(a, b)), default=0.0)
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(a - b) / max(1.0, abs(a), abs(b))


def worst(before, after, when):
    """The largest gap between two lists of values, and what happened."""
    gaps = [gap(a, b) for a, b in zip(before, after)]
    if not gaps:
        return 0.0, ""
    most = max(gaps)
    at = gaps.index(most)
    return most, f"{when}: {before[at]} becomes {after[at]}"


def picked(columns, rows):
    """Some rows of a batch."""
    return {name: [cells[r] for r in rows] for name, cells in columns.items()}


def prompts(columns, most=32):
    """The rows of each prompt of each step; of many prompts, some."""
    found = {}
    for row, key in enumerate(zip(columns["step"], columns["prompt"])):
        found.setdefault(key, []).append(row)
    return list(found.values())[:: max(1, -(-len(found) // most))]


def each_prompt_alone(call, columns):
    """A prompt that comes alone gets what it gets beside the others."""
    together = call(columns)
    found = [(0.0, "")]
    for rows in prompts(columns):
        alone = call(picked(columns, rows))
        before = [together[row] for row in rows]
        when = f"rows {rows} without the other prompts"
        found.append(worst(before, alone, when))
    return max(found)


def rewards_of_another_prompt(call, columns):
    """New rewards in one prompt move no row of another prompt."""
    before = call(columns)
    found = [(0.0, "")]
    for rows in prompts(columns):
        others = [r for r in range(len(before)) if r not in rows]
        new = list(columns["reward"])
        for place, row in enumerate(rows):
            new[row] = 3.0 - 2.0 * new[row] + place * place
        after = call({**columns, "reward": new})
        when = f"with other rewards in rows {rows}, a row outside them moves"
        pairs = [before[r] for r in others], [after[r] for r in others]
        found.append(worst(*pairs, when))
    return max(found)


def order_of_the_rows(call, columns):
    """The rows in another order get the same values."""
    before = call(columns)
    every = list(range(len(before)))
    blocks = prompts(columns, most=len(before))
    last_first = [row for rows in blocks[-1:] + blocks[:-1] for row in rows]
    by_prompt = [row for rows in reversed(blocks) for row in rows]
    found = [(0.0, "")]
    for order in (last_first, by_prompt, every[::-1]):
        after = call(picked(columns, order))
        moved = [before[row] for row in order]
        found.append(worst(moved, after, f"with the rows as {order}"))
    return max(found)


def rewards_of_silent_rows(call, columns, silent):
    """New rewards in rows that cannot learn move no other row."""
    before = call(columns)
    others = [r for r in range(len(before)) if r not in silent]
    found = [(0.0, "")]
    for factor, shift in ((0.0, 0.0), (1.0, 1.0), (-1.0, -2.0)):
        new = list(columns["reward"])
        for row in silent:
            new[row] = factor * new[row] + shift
        after = call({**columns, "reward": new})
        when = f"with other rewards in rows {silent}, another row moves"
        pairs = [before[r] for r in others], [after[r] for r in others]
        found.append(worst(*pairs, when))
    return max(found)


def silent_rows_left_out(call, columns, silent):
    """Without the rows that cannot learn, the others get the same."""
    others = [r for r in range(len(columns["reward"])) if r not in silent]
    if not others:
        return 0.0, ""
    before = call(columns)
    after = call(picked(columns, others))
    when = f"without rows {silent}, another row moves"
    return worst([before[r] for r in others], after, when)


def lengths_of_episodes(call, columns):
    """Other lengths of the episodes change no advantage."""
    before = call(columns)
    left = [r for r, kept in enumerate(columns["kept_steps"]) if kept]
    ones = dict.fromkeys(left, 1)
    mixed = {row: 1 + place % 3 for place, row in enumerate(left)}
    one_long = {**ones, **dict.fromkeys(left[:1], 10)}
    found = [(0.0, "")]
    for lengths in (ones, mixed, one_long):
        kept, steps = list(columns["kept_steps"]), list(columns["steps"])
        for row, length in lengths.items():
            kept[row] = steps[row] = length
        after = call({**columns, "kept_steps": kept, "steps": steps})
        found.append(worst(before, after, f"with the lengths {kept}"))
    return max(found)


def gradient_of_flat_groups(call, columns, flat):
    """Rows whose group has no spread of rewards have gradient 0."""
    gradient = call(columns)
    before = [[0.0] * len(gradient[row]) for row in flat]
    return worst(before, [gradient[row] for row in flat], f"rows {flat}")


def the_correct_numbers(call, columns, expected):
    """The numbers of the correct engine, under the batch's settings."""
    return worst(expected, call(columns), "correct and found")
