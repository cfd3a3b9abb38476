"""A report as one HTML page that asks nothing of the network.

Texts of documents, questions and names are hostile data: the template escapes all it inserts. Knows
how things are laid out, not what they mean.
"""

from __future__ import annotations

import re
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from eval.reports.types import Report

_FOLDER = files("eval.reports")


def html_page(report: Report) -> str:
    """The whole page, style and plots included."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=False, lstrip_blocks=True
    )
    environment.filters["anchor"] = _anchor
    template = environment.from_string(_FOLDER.joinpath("template.html.j2").read_text("utf-8"))
    style = _FOLDER.joinpath("style.css").read_text("utf-8")
    return template.render(report=report, style=style) + "\n"


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
