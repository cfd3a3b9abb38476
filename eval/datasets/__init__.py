"""Question sets in, documents with questions and gold answers out. `open_dataset` is the entry."""

from __future__ import annotations

from eval.datasets.forms import FORM_NAMES, FORMS, Form, Reader, detect_form, open_dataset
from eval.datasets.writing import Written, write_jsonl

__all__ = [
    "FORMS",
    "FORM_NAMES",
    "Form",
    "Reader",
    "Written",
    "detect_form",
    "open_dataset",
    "write_jsonl",
]
