"""How many threads an operator uses, in the training process or in a loader's worker."""

from __future__ import annotations

import functools
import multiprocessing
import sys

from hotlap.knobs.target import Target


def replace_set_num_threads(target: Target, wanted: int, *, for_workers: bool) -> None:
    """Let ``torch.set_num_threads`` set ``wanted``, whatever it is called with.

    for_workers: in the workers of loaders only; else everywhere but there.
    """
    torch = sys.modules["torch"]
    own = torch.set_num_threads

    @functools.wraps(own)
    def set_num_threads(threads: int) -> None:
        # Workers of a loader are daemons; what a script starts itself for training is none.
        if bool(multiprocessing.current_process().daemon) is not for_workers:
            own(threads)
            return
        own(wanted)
        if threads != wanted:
            target.acted(f"{threads} were asked for, {wanted} are used")
        cv2 = sys.modules.get("cv2")
        if for_workers and cv2 is not None:
            cv2.setNumThreads(wanted)

    target.replace(torch, "set_num_threads", set_num_threads)
