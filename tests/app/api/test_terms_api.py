"""GET /documents/{id}/terms."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.schemas.terms import DocumentTermsPublic, KeyTermPublic, TermValuePublic
from app.key_terms import DocumentTerms
from app.terms.types import KeyTerm, TermValue

TEXT = "1. Rent\nThe rent is EUR 1,200.00.\n\n2. Law\nThis Agreement is governed by Irish law.\n"


def test_terms_with_their_places(client: TestClient, upload: Any) -> None:
    document_id = upload(TEXT)["id"]
    reply = client.get(f"/api/v1/documents/{document_id}/terms")
    assert reply.status_code == 200
    body = reply.json()
    assert body["document_id"] == document_id
    found = {term["name"]: term for term in body["terms"]}
    (rent,) = found["amounts"]["values"]
    span = {"start": rent["words"]["start"], "end": rent["words"]["end"]}
    text = client.get(f"/api/v1/documents/{document_id}/text", params=span).json()["text"]
    assert text == rent["words"]["text"] and rent["value"] == "1200 EUR"
    assert found["parties"]["state"] == "not_stated"
    assert rent["passage"]["clause"] == "1"
    # A text file has no page 1 that anyone could turn to; an answer names none either.
    assert rent["passage"]["page"] is None and rent["words"]["page"] is None


def test_unknown_document(client: TestClient) -> None:
    reply = client.get("/api/v1/documents/doc_none/terms")
    assert (reply.status_code, reply.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("shown", "value"),
    [
        (TermValuePublic, TermValue),
        (KeyTermPublic, KeyTerm),
        (DocumentTermsPublic, DocumentTerms),
    ],
)
def test_rest_and_command_have_the_same_fields(shown: Any, value: Any) -> None:
    names = [field.name for field in dataclasses.fields(value)]
    assert [name for name in shown.model_fields if name != "object"] == names
