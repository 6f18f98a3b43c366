"""Undisturbed: what a check changes in the process while it runs."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def undisturbed() -> Iterator[None]:
    """One torch thread, since parts are small; and a garbage collector that
    leaves alone what was there before. Both are put back."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    free = not gc.get_freeze_count()  # the app's server has frozen it for good
    if free:
        gc.freeze()
    try:
        yield
    finally:
        if free:
            gc.unfreeze()
        torch.set_num_threads(threads)


def return_memory() -> None:
    """Frees what a check held and gives the memory back to the system.

    Stages and their runs refer to each other, so only a collection frees
    them. The C library glibc keeps freed memory for later, about 100 MB on
    400,000 rows; other libraries are left alone.
    """
    gc.collect()
    if hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)
