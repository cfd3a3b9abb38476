"""What can go wrong in the engine. It knows nothing of HTTP: a door translates these.

BackendError
├── CheckpointError          the model's files are damaged, incomplete or of an unknown kind
├── ChatTemplateError        the checkpoint's chat template is missing or refuses the messages
├── InvalidSampling          a sampling parameter is out of its range
├── RequestTooLarge          the request can never fit in this engine
│   └── WindowExceeded       it has more tokens than the model's window
├── EngineBusy               the queue is full; try again later
├── OutOfMemory              a request needs more memory than is free now
├── UnknownDocument          no document with this key has been given to the engine
├── SensorError              the GPU's sensors are missing or don't answer
└── EngineClosed             the engine was closed
"""

from __future__ import annotations

from pathlib import Path

__all__ = [
    "BackendError",
    "ChatTemplateError",
    "CheckpointError",
    "EngineBusy",
    "EngineClosed",
    "InvalidSampling",
    "OutOfMemory",
    "RequestTooLarge",
    "SensorError",
    "UnknownDocument",
    "WindowExceeded",
]


class BackendError(Exception):
    """Base of everything the engine raises on purpose. The message says what to do."""


class CheckpointError(BackendError):
    """A model file can't be used: `path` names it, `problem` says why, `remedy` what to do."""

    def __init__(self, path: Path, problem: str, remedy: str) -> None:
        super().__init__(f"{path}: {problem}. {remedy}")
        self.path = path
        self.problem = problem
        self.remedy = remedy


class ChatTemplateError(BackendError):
    """The chat template is missing, broken, or refused the messages it was given."""


class InvalidSampling(BackendError):
    """A sampling parameter is out of its range; the message names it and the range."""


class RequestTooLarge(BackendError):
    """The request needs more tokens or pages than the engine can ever give it."""


class WindowExceeded(RequestTooLarge):
    """Prompt, evidence and answer have more tokens than the model's window."""


class EngineBusy(BackendError):
    """The engine's queue is full."""


class OutOfMemory(BackendError):
    """The device's memory does not suffice for the request beside what else is going on."""


class UnknownDocument(BackendError):
    """The engine has not been given the document that the request names."""


class SensorError(BackendError):
    """The GPU's sensors are missing or don't answer. Work goes on without them."""


class EngineClosed(BackendError):
    """The engine was closed, or its thread died, before the call was done."""
