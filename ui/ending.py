"""What SIGTERM and Ctrl-C do: the first asks the process to end in order, the second ends it.

Knows no server. Nothing that matters is lost at once: what is stored is stored whole, and the next
start goes on with what this one leaves open.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from app.cli.reporting import note


class Ending:
    """The signals that a process has met."""

    def __init__(self) -> None:
        self.asked = False

    def leave(self, number: int, _: FrameType | None) -> None:
        """A signal while nothing is served: leaves through the open blocks, which close what is
        open; a second one does not wait for them."""
        self.ask(number)
        raise SystemExit(128 + number)

    @contextmanager
    def finally_leaving(self) -> Iterator[None]:
        """Around all blocks: once they are closed, a process that leaves ends here. Libraries that
        were being loaded have threads of their own by then, and would abort it on their way out."""
        try:
            yield
        except SystemExit as end:
            if self.asked and isinstance(end.code, int):
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(end.code)
            raise

    def ask(self, number: int) -> None:
        """Notes the first signal; the process ends here at the second."""
        if self.asked:
            note("Ending at once.")
            os._exit(128 + number)
        self.asked = True
