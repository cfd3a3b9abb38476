"""Short messages to the reader: what happened, what went wrong and what to do."""

from __future__ import annotations

from ui.advice import advice
from ui.errors import ApiProblem, UIError
from ui.markup import esc
from ui.strings import Lang, text


def reason(error: UIError, lang: Lang) -> str:
    """Why the API did not do what was asked, in the reader's words."""
    if isinstance(error, ApiProblem):
        return advice(lang, error.code, error.detail)
    return text(lang, "unreachable")


def notice(said: str, *, bad: bool = False) -> str:
    """A message in the documents' region. Screen readers say it at once when it is bad news."""
    role, css = ("alert", ' class="fp-bad"') if bad else ("status", "")
    return f'<div class="fp-notices" role="{role}"><p{css}>{esc(said)}</p></div>'


def status_line(said: str, *, quiet: bool = False) -> str:
    """A message beside the question box; `quiet` ones are for screen readers only."""
    css = ' class="fp-sr"' if quiet else ""
    return f'<p role="status"{css}>{esc(said)}</p>'


def title(lang: Lang, key: str) -> str:
    """The heading of a region."""
    return f"<h2>{esc(text(lang, key))}</h2>"
