"""How far a run is, on stderr: a bar for a person at a terminal, else a line every ten seconds."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from tqdm import tqdm

from app.cli.reporting import note

LINE_EVERY_S = 10.0


class Progress:
    """Counts ended questions. `bar` forces or forbids the bar; None looks at stderr."""

    def __init__(self, total: int, done: int, *, bar: bool | None = None) -> None:
        self.total, self.done, self.failed, self.unfit = total, done, 0, 0
        shown = sys.stderr.isatty() if bar is None else bar
        self._bar = (
            tqdm(total=total, initial=done, unit="question", file=sys.stderr) if shown else None
        )
        self._started = self._told = time.monotonic()
        self._before = done

    def ended(self, status: str) -> None:
        """One more question has ended."""
        self.done += 1
        self.failed += status == "failed"
        self.unfit += status == "unfit"
        if self._bar is not None:
            self._bar.set_postfix(failed=self.failed, unfit=self.unfit, refresh=False)
            self._bar.update()
        elif time.monotonic() - self._told >= LINE_EVERY_S:
            self._told = time.monotonic()
            note(self._line())

    def _line(self) -> str:
        took = time.monotonic() - self._started
        left = took / max(1, self.done - self._before) * (self.total - self.done)
        troubles = f", {self.failed} failed, {self.unfit} unfit" if self.failed + self.unfit else ""
        return f"{self.done} of {self.total} questions{troubles}, about {left:.0f} s left"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
