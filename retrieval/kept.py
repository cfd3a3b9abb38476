"""Results kept for the texts that were asked last: by the text object, not by its words.

A cache that finds a text by its words would find another document of the same words too, and the
time of a question would tell that somebody else has the same contract. Does not know owners.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def kept_by_identity(size: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keeps the results of the last `size` calls for calls with the very same objects, by position.
    The arguments must never change. Two threads may compute the same at once."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        # With the arguments, so that no other object gets their identity meanwhile.
        kept: OrderedDict[tuple[int, ...], tuple[tuple[object, ...], R]] = OrderedDict()
        lock = threading.Lock()

        @wraps(function)
        def found(*args: P.args, **kwargs: P.kwargs) -> R:
            if kwargs:
                return function(*args, **kwargs)
            place = tuple(map(id, args))
            with lock:
                if place in kept:
                    kept.move_to_end(place)
                    return kept[place][1]
            result = function(*args, **kwargs)
            with lock:
                kept[place] = args, result
                while len(kept) > size:
                    kept.popitem(last=False)
            return result

        return found

    return decorate
