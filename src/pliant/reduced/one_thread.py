"""Products of a few hundred numbers, on one thread: sharing them out costs more than they do.

BLAS would wake its threads for each of them; on a machine where others are at work they wait for
each other a hundred times as long as the product takes. And the bits of a step do not depend on
how many threads there are.
"""

from functools import lru_cache

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread():
    """A context in which BLAS keeps to one thread; ten microseconds."""
    return _controller().limit(limits=1, user_api="blas")
