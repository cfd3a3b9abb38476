"""Tuning tables: which constants of a kernel were measured to be best on which card.

One JSON file a card, each entry with the measurements that chose it. `fineprint bench kernels
--tune` makes them; those of this folder are shipped. It knows no kernel.
"""

from __future__ import annotations

from backend.ops.tuning.lookup import FOLDER_NAME, card_of, find_entry, trying, tuned, use_tables
from backend.ops.tuning.table import Attempt, Card, Choice, Entry, Table, read_table

__all__ = [
    "FOLDER_NAME",
    "Attempt",
    "Card",
    "Choice",
    "Entry",
    "Table",
    "card_of",
    "find_entry",
    "read_table",
    "trying",
    "tuned",
    "use_tables",
]
