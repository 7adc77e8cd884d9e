"""The garbage collector beside a loop that people wait for."""

import gc


def leave_out_what_stays() -> None:
    """Takes what the start has built out of the collector's sight: a full collection, which holds up every thread, then
    looks only at what came since.
    """
    gc.collect()
    gc.freeze()
