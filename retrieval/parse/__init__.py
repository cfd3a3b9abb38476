"""Files in, Documents out. `parse_file` is the entry; `retrieval.parse.render` makes pictures."""

from __future__ import annotations

from retrieval.parse.limits import ParseLimits
from retrieval.parse.reader import parse_file

__all__ = ["ParseLimits", "parse_file"]
