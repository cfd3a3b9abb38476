"""Where each character of a document stands on its page, kept in one small file per document.

Does not know rectangles of quotes (`app.documents` joins characters to lines).
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from app.documents import BOX_SCALE, Boxes
from app.errors import Corrupted
from app.storage import atomic_write
from retrieval.types import Document

NAME = "boxes.npz"
NOWHERE = (BOX_SCALE, BOX_SCALE, 0, 0)
"""A character without a place: x0 > x1."""


def save_boxes(folder: Path, document: Document) -> bool:
    """Write the geometry of a parsed document. False: the format has none.

    Stored as 16-bit fractions, 1/65,535 of a page: under 0.02 points on A4.
    """
    if not document.char_boxes:
        return False
    boxes = np.full((len(document.text), 4), NOWHERE, dtype=np.uint16)
    for page in document.pages:
        chars = document.char_boxes.get(page.number, ())[: page.end - page.start]
        places = [index for index, box in enumerate(chars) if box is not None]
        if places:
            fractions = np.asarray([chars[index] for index in places], dtype=np.float64)
            scaled = np.rint(fractions.clip(0.0, 1.0) * BOX_SCALE).astype(np.uint16)
            boxes[page.start + np.asarray(places)] = scaled
    with atomic_write(folder / NAME) as file:
        # A coordinate changes little from one character to the next: each packs better alone.
        np.savez_compressed(file, columns=np.ascontiguousarray(boxes.T))
    return True


def load_boxes(folder: Path) -> Boxes:
    """The geometry written by `save_boxes`. Raises Corrupted when it is gone."""
    try:
        with (folder / NAME).open("rb") as stored, np.load(stored, allow_pickle=False) as file:
            columns = np.asarray(file["columns"], dtype=np.uint16)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise Corrupted(
            f"The page geometry {folder / NAME} is missing or damaged. Delete the document and "
            "upload it again."
        ) from error
    return np.ascontiguousarray(columns.T)
