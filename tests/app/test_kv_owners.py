"""Two owners upload the same contract: each reads it, in memory and over a restart, unless a
setting lets their KV be shared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api_keys import ApiKeys
from app.services import open_services
from app.settings import KVSharing, Settings

CONTRACT = "".join(
    f"{number}. The Supplier shall deliver lot {number * 37 % 101} within {number * 13 % 90 + 9} "
    f"days of Order {number * 7}, at a price of EUR {number * 4321 % 9973}.\n"
    for number in range(1, 60)
)


def settings(folder: Path, model: Path, sharing: KVSharing) -> Settings:
    return Settings(
        data_dir=folder, model=str(model), precision="float32", block_tokens=128, kv_budget_mb=64,
        kv_disk_mb=64, kv_sharing=sharing, api_keys="required",
    )  # fmt: skip


class Installation:
    """A server in this process, and the keys of its owners."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.services = client.app.state.services  # type: ignore[attr-defined]
        self._keys = ApiKeys(self.services.database)

    def key(self, owner: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._keys.create(owner)[1]}"}

    def upload(self, owner: str, name: str = "contract.txt") -> dict[str, Any]:
        """The document as its owner sees it once it is read."""
        files = {"file": (name, CONTRACT.encode())}
        headers = self.key(owner)
        sent = self.client.post("/api/v1/documents", files=files, headers=headers).json()
        assert sent["duplicate"] is False
        assert self.services.library.wait(sent["id"], 60).status == "completed"
        shown: dict[str, Any] = self.client.get(
            f"/api/v1/documents/{sent['id']}", headers=headers
        ).json()
        return shown

    def ask(self, owner: str, document_id: str) -> dict[str, Any]:
        body = {"question": "What is the price of lot 37?", "document_ids": [document_id]}
        reply = self.client.post("/api/v1/answers", json=body, headers=self.key(owner))
        assert reply.status_code == 200, reply.text
        answer: dict[str, Any] = reply.json()
        return answer

    @property
    def pages(self) -> int:
        used: int = self.services.engine.counters.pages_used
        return used

    def blocks(self, document_id: str) -> set[bytes]:
        """Content keys of the document's blocks."""
        engine = self.services.engine
        document = self.services.library.load(document_id)
        return set(engine.read(document.tokens)._reading.keys)


@contextmanager
def running(folder: Path, model: Path, sharing: KVSharing) -> Iterator[Installation]:
    from app.api import create_app

    with (
        open_services(settings(folder, model, sharing), serve=True) as services,
        TestClient(create_app(services)) as client,
    ):
        yield Installation(client)


def test_nothing_of_another_owner_is_used(tmp_path: Path, tiny_llama: Path) -> None:
    with running(tmp_path, tiny_llama, "owner") as here:
        first = here.upload("Alice")
        pages = here.pages
        second = here.upload("Bob")
        assert first["read"]["computed_tokens"] == first["total_tokens"] > 500
        assert second["read"] == first["read"], "Bob reads all that Alice read, and nothing less"
        assert here.pages == 2 * pages
        assert not here.blocks(first["id"]) & here.blocks(second["id"])
        answers = [here.ask("Alice", first["id"]), here.ask("Bob", second["id"])]
        assert [answer["usage"]["read_tokens"] for answer in answers] == [0, 0]
        assert answers[0]["answer"] == answers[1]["answer"]


def test_sharing_is_a_setting(tmp_path: Path, tiny_llama: Path) -> None:
    with running(tmp_path, tiny_llama, "all") as here:
        first = here.upload("Alice")
        pages = here.pages
        second = here.upload("Bob")
        assert first["read"]["computed_tokens"] == first["total_tokens"]
        assert second["read"]["computed_tokens"] == 0
        assert second["read"]["reused_tokens"] == second["total_tokens"]
        assert here.pages == pages and here.blocks(first["id"]) == here.blocks(second["id"])

        # What one owner deletes stays for the other.
        path = f"/api/v1/documents/{first['id']}"
        assert here.client.delete(path, headers=here.key("Alice")).status_code == 200
        answer = here.ask("Bob", second["id"])
        assert answer["usage"]["read_tokens"] == 0
        assert answer["coverage"]["read_tokens"] == second["total_tokens"]


@pytest.mark.parametrize("sharing", ["owner", "all"])
def test_the_disk_keeps_owners_apart_as_well(
    tmp_path: Path, tiny_llama: Path, sharing: KVSharing
) -> None:
    with running(tmp_path, tiny_llama, sharing) as here:
        total = here.upload("Alice")["read"]["computed_tokens"]
    assert list((tmp_path / "kv").glob("*.safetensors"))
    with running(tmp_path, tiny_llama, sharing) as here:
        computed = here.upload("Bob")["read"]["computed_tokens"]
        assert computed == (total if sharing == "owner" else 0)


def test_turning_sharing_off_again_keeps_owners_apart(tmp_path: Path, tiny_llama: Path) -> None:
    with running(tmp_path, tiny_llama, "all") as here:
        total = here.upload("Alice")["read"]["computed_tokens"]
    with running(tmp_path, tiny_llama, "owner") as here:
        assert here.upload("Bob")["read"]["computed_tokens"] == total
