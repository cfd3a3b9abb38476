"""POST /comparisons: two documents of the library against each other."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.schemas.comparisons import (
    ChangePublic,
    ComparedDocumentPublic,
    ComparisonPublic,
    ConsequencePublic,
    EditPublic,
    PlacePublic,
    TotalsPublic,
)
from app.comparisons import ComparedDocument, VersionComparison
from retrieval.compare.types import Change, Consequence, Edit, Place, Totals

COMPARISONS = "/api/v1/comparisons"
OLD = "1. Term\nTwo years from signing.\n\n2. Price\nThe price is EUR 1,250,000.00 in total.\n"


def body(old: str, new: str) -> dict[str, str]:
    return {"old_document_id": old, "new_document_id": new}


def test_changed_figure_with_its_places(client: TestClient, upload: Any) -> None:
    old, new = upload(OLD, "old.txt")["id"], upload(OLD.replace("1,2", "1,3"), "new.txt")["id"]
    reply = client.post(COMPARISONS, json=body(old, new))
    assert reply.status_code == 200
    found = reply.json()
    (change,) = found["changes"]
    (edit,) = change["edits"]
    assert change["category"] == edit["category"] == "figure"
    for side, document_id in (("old", old), ("new", new)):
        place = edit[side]
        span = {"start": place["start"], "end": place["end"]}
        text = client.get(f"/api/v1/documents/{document_id}/text", params=span).json()["text"]
        assert text == place["text"]
        assert found[side]["document_id"] == document_id
    assert found["totals"]["same"] == 1 and found["totals"]["changed"] == 1


def test_the_same_document_twice(client: TestClient, upload: Any) -> None:
    document = upload(OLD)["id"]
    found = client.post(COMPARISONS, json=body(document, document)).json()
    assert found["changes"] == [] and found["identical"] is True
    assert [warning["code"] for warning in found["warnings"]] == ["same_document"]


def test_unknown_document_and_bad_bodies(client: TestClient, upload: Any) -> None:
    document = upload(OLD)["id"]
    reply = client.post(COMPARISONS, json=body(document, "doc_none"))
    assert (reply.status_code, reply.json()["code"]) == (404, "not_found")
    assert "doc_none" in reply.json()["detail"]
    reply = client.post(COMPARISONS, json={"old_document_id": document})
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request")
    reply = client.post(COMPARISONS, json={**body(document, document), "deep": True})
    assert reply.status_code == 422


def test_two_languages_are_refused(client: TestClient, upload: Any) -> None:
    english, chinese = upload(OLD)["id"], upload("第一条 甲方应于三十日内付款。", "zh.txt")["id"]
    reply = client.post(COMPARISONS, json=body(english, chinese))
    assert (reply.status_code, reply.json()["code"]) == (400, "different_languages")


@pytest.mark.parametrize(
    ("shown", "value"),
    [
        (PlacePublic, Place),
        (EditPublic, Edit),
        (ConsequencePublic, Consequence),
        (ChangePublic, Change),
        (TotalsPublic, Totals),
        (ComparedDocumentPublic, ComparedDocument),
        (ComparisonPublic, VersionComparison),
    ],
)
def test_rest_and_command_have_the_same_fields(shown: Any, value: Any) -> None:
    names = [field.name for field in dataclasses.fields(value)]
    assert [name for name in shown.model_fields if name != "object"] == names
