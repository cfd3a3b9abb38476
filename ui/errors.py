"""What can go wrong between the page and the REST API.

UIError
├── ApiProblem       the API refused, with a reason (RFC 9457)
└── ApiUnreachable   no reply, or one that is not the API's
"""

from __future__ import annotations

__all__ = ["ApiProblem", "ApiUnreachable", "UIError"]


class UIError(Exception):
    """Base of the errors the page shows."""


class ApiProblem(UIError):
    """The API's own words (`detail`) with its stable `code` and HTTP `status`."""

    def __init__(self, code: str, detail: str, status: int) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.status = status


class ApiUnreachable(UIError):
    """The server did not answer in time, or something else answered in its place."""
