"""How keys and values lie in a page: one interface, a codec for each format, and their names.

Knows rows of numbers; no pool, no blocks and no model. The codecs are plain torch and the
specification of any faster ones.
"""

from __future__ import annotations

from kvstore.formats.names import FORMATS, FormatName, page_format
from kvstore.formats.types import Cell, PageFormat, Part

__all__ = ["FORMATS", "Cell", "FormatName", "PageFormat", "Part", "page_format"]
