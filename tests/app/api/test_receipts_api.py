"""Receipts in the database: made when a document is taken in, completed when it is indexed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from sqlalchemy import select, update

from app.db.models import VersionRow
from app.receipts import receipt_from, receipt_json, save_index_figures, stored_receipt
from retrieval.parse.source import Source
from retrieval.receipt import receipt_of
from retrieval.types import Chunk, DocumentPage

DOCUMENTS = "/api/v1/documents"
TEXT = "1. Fee\nThe fee is USD 4,500.\n\n2. Term\nThe term is 24 months.\n"


def test_a_receipt_survives_its_stored_form() -> None:
    pages = (DocumentPage(1, 0, len(TEXT), "i"),)
    receipt = receipt_of(TEXT, pages, Source(TEXT + "USD 99"))
    stored = receipt_json(receipt)
    assert stored is not None
    assert receipt_from(stored["parsed"]) == receipt
    assert receipt.figures.missing == ("99",)


@pytest.mark.usefixtures("client")
def test_indexing_completes_the_receipt_and_may_run_again(services: Any, upload: Any) -> None:
    document = upload(TEXT)
    first = stored_receipt(services.database, document["id"])
    assert first is not None
    assert first.figures.in_file == first.figures.in_index == 4
    with services.database.write() as session:
        version = session.execute(select(VersionRow.id)).scalar_one()
        holed = [Chunk(0, 0, 10, None, "", 1, 1)]
        save_index_figures(session, version, TEXT, holed)
        save_index_figures(session, version, TEXT, holed)
    again = stored_receipt(services.database, document["id"])
    assert again is not None
    assert again.figures.in_index == 1
    assert again.figures.missing == ("4,500", "2", "24")
    assert {**asdict(again), "figures": None} == {**asdict(first), "figures": None}


def test_the_receipt_of_a_document_tells_what_was_counted(client: Any, upload: Any) -> None:
    document = upload(TEXT)
    receipt = client.get(f"{DOCUMENTS}/{document['id']}/receipt").json()
    assert receipt["figures"] == {
        "in_file": 4,
        "in_text": 4,
        "in_index": 4,
        "left_out": 0,
        "added": 0,
        "missing_count": 0,
        "missing": [],
    }
    assert (receipt["tables"], receipt["garbled"], receipt["empty_pages"]) == (0, 0.0, [])
    assert receipt["pages"] == [
        {
            "number": 1,
            "label": None,
            "method": "text",
            "characters": len(TEXT.strip()),
            "garbled": 0.0,
            "tables": 0,
        }
    ]


def test_a_document_from_before_has_a_receipt_without_counts(
    client: Any, upload: Any, services: Any
) -> None:
    document = upload(TEXT)
    with services.database.write() as session:
        session.execute(update(VersionRow).values(receipt=None))
    receipt = client.get(f"{DOCUMENTS}/{document['id']}/receipt").json()
    assert receipt["figures"] is None and receipt["pages"][0]["garbled"] is None
    assert receipt["pages"][0]["characters"] == len(TEXT.strip())
