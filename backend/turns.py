"""Whose turn it is among owners: that of the one who was served the fewest tokens.

The virtual token counter of Sheng et al., "Fairness in Serving Large Language Models" (OSDI 2024):
an owner who comes begins with the count of the one who has the least, so that nobody saves up turns
while nothing is asked. Between two owners that both have work the counts differ by at most one step
of each. Knows neither requests nor documents. Owned by the engine's thread.
"""

from __future__ import annotations

from collections.abc import Collection


class Turns:
    """Owners that have work, and how much each was served."""

    def __init__(self) -> None:
        self._work: dict[str, int] = {}
        self._served: dict[str, int] = {}
        # When each was served last, counted in steps.
        self._last: dict[str, int] = {}
        self._steps = 0

    def __contains__(self, owner: str) -> bool:
        return owner in self._work

    def __len__(self) -> int:
        return len(self._work)

    def served(self, owner: str) -> int:
        """The owner's count of tokens; it means something beside others' counts only."""
        return self._served[owner]

    def enter(self, owner: str) -> None:
        """The owner has one piece of work more."""
        if owner not in self._work:
            if not self._work:
                self._served.clear()
                self._last.clear()
            least = min((self._served[one] for one in self._work), default=0)
            self._forget_up_to(least)
            self._served[owner] = max(self._served.get(owner, 0), least)
        self._work[owner] = self._work.get(owner, 0) + 1

    def leave(self, owner: str) -> None:
        """One piece of the owner's work is over."""
        self._work[owner] -= 1
        if not self._work[owner]:
            del self._work[owner]

    def order(self) -> list[str]:
        """Owners with work, the one whose turn it is first; of two with the same count the one who
        waits longer."""
        if len(self._work) < 2:
            return list(self._work)
        return sorted(self._work, key=lambda one: (self._served[one], self._last.get(one, 0)))

    def charge(self, owner: str, tokens: int, passed_over: Collection[str] = ()) -> None:
        """The owner was served `tokens` tokens. Those who were `passed_over` because nothing of
        theirs could be done count as if it had been their wish: they save up nothing."""
        for other in passed_over:
            if other in self._work:
                self._served[other] = max(self._served[other], self._served[owner])
        self._steps += 1
        self._served[owner] += tokens
        self._last[owner] = self._steps

    def _forget_up_to(self, least: int) -> None:
        """Owners without work whose count says nothing any more."""
        for owner in [one for one in self._served if one not in self._work]:
            if self._served[owner] <= least:
                del self._served[owner]
                self._last.pop(owner, None)
