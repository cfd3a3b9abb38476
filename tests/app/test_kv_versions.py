"""A new version of a contract is read only where it differs from the old one."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from app.services import Services, open_services
from app.settings import BlockCuts, Settings

CLAUSES = [
    f"{number}. The Supplier shall deliver lot {number * 37 % 101} within {number * 13 % 90 + 9} "
    f"days of Order {number * 7}, at a price of EUR {number * 4321 % 9973}.\n"
    for number in range(1, 130)
]
BLOCK = 128


def settings(folder: Path, model: Path, cuts: BlockCuts) -> Settings:
    return Settings(
        data_dir=folder, model=str(model), precision="float32", block_tokens=BLOCK,
        kv_budget_mb=64, kv_disk_mb=0, block_cuts=cuts,
    )  # fmt: skip


def read_for(services: Services, clauses: list[str]) -> int:
    """Tokens that go through the model when this version is uploaded."""
    before = services.engine.counters.read_tokens
    record, _ = services.library.add(io.BytesIO("".join(clauses).encode()), "contract.txt")
    assert services.library.wait(record.id, 60).status == "completed"
    document = services.library.load(record.id)
    assert all(last - first <= BLOCK for first, last in document.tokens.blocks)
    assert services.engine.read(document.tokens).wait(60).status == "done"
    return services.engine.counters.read_tokens - before


@pytest.mark.parametrize("cuts", ["clauses", "fixed"])
def test_an_edited_or_inserted_clause_re_reads_three_blocks_at_most(
    tmp_path: Path, tiny_llama: Path, cuts: BlockCuts
) -> None:
    edited = [*CLAUSES]
    edited[70] = edited[70].replace("within", "no later than")
    inserted = [*CLAUSES]
    inserted.insert(3, "3a. The Buyer may refuse late lots and need not give any reason for it.\n")
    with open_services(settings(tmp_path, tiny_llama, cuts), serve=True) as services:
        whole = read_for(services, CLAUSES)
        assert whole > 40 * BLOCK
        edit, insert = read_for(services, edited), read_for(services, inserted)
    if cuts == "clauses":
        assert 0 < edit <= 3 * BLOCK
        assert 0 < insert <= 3 * BLOCK
    else:
        # What the cuts are for: after an insertion no fixed block is as it was.
        assert insert > 0.9 * whole
