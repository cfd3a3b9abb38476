"""What can go wrong in an evaluation.

    EvalError
    ├── DatasetError     a question set can't be read; says file, line and what to do
    ├── HubUnavailable   a question set can't be fetched
    ├── BadSwitch        an unknown switch or value; names those there are
    ├── RunError         a run's folder holds another run, or is in use
    ├── PeerError        an endpoint did not answer as an OpenAI-compatible server does
    ├── Unfit            a mode can't take a document or question; the sample's record says why
    └── NotCold          a run called cold met pages that were already there

All are `AppError`s, so that the command line tells them as it tells the others: by message, without
a trace, with exit status 2 when the input is at fault.
"""

from __future__ import annotations

from app.errors import AppError


class EvalError(AppError):
    """Any error of this package."""

    status = 400
    code = "evaluation_error"


class DatasetError(EvalError):
    """A question set can't be read."""

    code = "bad_dataset"


class HubUnavailable(EvalError):
    """The hub can't be reached to fetch a question set."""

    status = 503
    code = "hub_unavailable"


class BadSwitch(EvalError):
    """A switch is unknown or its value is."""

    code = "bad_switch"


class RunError(EvalError):
    """The folder of a run can't be used."""

    code = "bad_run"


class PeerError(EvalError):
    """An endpoint can't be measured."""

    status = 502
    code = "peer_failed"


class Unfit(EvalError):
    """This mode can't take this document or question; the record says so and why."""

    code = "unfit"


class NotCold(EvalError):
    """A measurement called cold found document pages in the cache."""

    status = 500
    code = "not_cold"
