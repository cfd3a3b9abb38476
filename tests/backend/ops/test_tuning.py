"""Tuning tables: what is shipped, which entry a card gets, and what a bad file says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from app.services import engine_config
from app.settings import load_settings
from backend.engine_config import EngineConfig
from backend.errors import BackendError
from backend.ops.block_attention import HopperTiles, Tiles, choose_implementation
from backend.ops.block_attention.tiles import SAFE, choose_hopper_tiles, choose_tiles
from backend.ops.few_rows_linear import LinearTiles
from backend.ops.page_attention.tiles import (
    PageTiles,
    WarpTiles,
    choose_page_tiles,
    choose_warp_tiles,
)
from backend.ops.tuning import (
    FOLDER_NAME,
    Attempt,
    Card,
    Entry,
    Table,
    card_of,
    find_entry,
    lookup,
    read_table,
    trying,
    use_tables,
)
from backend.ops.tuning.warps import Warps, choose_warps
from backend.parts import load_parts

MAKERS = {
    "block_attention": Tiles,
    "block_attention_hopper": HopperTiles,
    "page_attention": PageTiles,
    "page_attention_warps": WarpTiles,
    "add_norm": Warps,
    "gated_unit": Warps,
    "few_rows_linear": LinearTiles,
    "some_rows_linear": LinearTiles,
    "many_rows_linear": LinearTiles,
}
H200, H20 = Card("NVIDIA H200", (9, 0)), Card("NVIDIA H20", (9, 0))
A100 = Card("NVIDIA A100-SXM4-80GB", (8, 0))
CUDA = torch.device("cuda")
SMALL = {"rows": 32, "keys": 16, "warps": 4, "stages": 2}


@pytest.fixture(autouse=True)
def own_tables() -> Iterator[None]:
    """No test leaves its tables to the next."""
    yield
    lookup._own.clear()
    lookup._tables.cache_clear()
    find_entry.cache_clear()


@pytest.fixture
def on_card(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Card]]:
    """The card that a CUDA device is taken for: the last of the list."""
    cards = [H200]

    def card(device: torch.device) -> Card | None:
        return cards[-1] if device.type == "cuda" else None

    monkeypatch.setattr(lookup, "card_of", card)
    yield cards


def table(card: Card, choice: dict[str, int], width: int = 64) -> Table:
    attempts = (Attempt(choice, 1.5), Attempt({"rows": 8}, None, 'too "small"\nby far'))
    entry = Entry("block_attention", width, ("bfloat16",), choice, "TFLOP/s", "x", "y", attempts)
    return Table(card, (entry,))


def write(folder: Path, one: Table) -> Path:
    path = folder / one.file_name
    path.write_text(one.text(), encoding="utf-8")
    return path


@pytest.mark.parametrize("path", sorted(lookup.SHIPPED.glob("*.json")), ids=lambda path: path.name)
def test_shipped_tables_hold_what_the_kernels_take(path: Path) -> None:
    shipped = read_table(path)
    assert path.name == shipped.file_name
    assert path.read_text("utf-8") == shipped.text()
    places = [(e.op, e.width, name) for e in shipped.entries for name in e.dtypes]
    assert len(set(places)) == len(places)
    for entry in shipped.entries:
        MAKERS[entry.op](**entry.choice)
        measured = [one.choice for one in entry.attempts if one.speed]
        assert entry.choice in measured
        assert entry.unit and entry.on and entry.source


def test_the_h200_keeps_the_constants_that_were_measured_on_it(on_card: list[Card]) -> None:
    half = torch.bfloat16
    assert choose_tiles(64, half, CUDA) == Tiles(128, 64, 4, 3)
    assert choose_tiles(128, torch.float16, CUDA) == Tiles(128, 128, 8, 3)
    assert choose_hopper_tiles(64, half, CUDA) == HopperTiles(3, 128, 4, 128, 160)
    assert choose_hopper_tiles(128, half, CUDA) == HopperTiles(2, 128, 2, 168, 240)
    assert choose_page_tiles(64, half, CUDA) == PageTiles(2, 3, 16)
    assert choose_page_tiles(128, half, CUDA) == PageTiles(4, 3, 16)
    assert choose_warp_tiles(128, half, CUDA, 256) == WarpTiles(2, 255, 2, 256)
    assert choose_warp_tiles(128, torch.uint8, CUDA, 256) == WarpTiles(3, 168, 2, 256)


def test_what_was_not_measured_gets_the_safe_default(on_card: list[Card]) -> None:
    for width, dtype in ((256, torch.bfloat16), (64, torch.float32), (32, torch.float16)):
        assert choose_tiles(width, dtype, CUDA) == SAFE
        assert choose_hopper_tiles(width, dtype, CUDA) is None
    assert choose_page_tiles(256, torch.bfloat16, CUDA) == PageTiles(4, 1, 16)
    # Few pages, other heads and cards of other kinds are for the kernel that reads all of them.
    assert choose_warp_tiles(128, torch.bfloat16, CUDA, 255) is None
    assert choose_warp_tiles(128, torch.uint8, CUDA, 255) is None
    assert choose_warp_tiles(64, torch.uint8, CUDA, 1000) is None
    assert choose_warp_tiles(80, torch.bfloat16, CUDA, 1000) is None
    assert choose_warp_tiles(128, torch.float32, CUDA, 1000) is None
    on_card.append(A100)
    assert choose_warp_tiles(128, torch.bfloat16, CUDA, 1000) is None
    assert choose_tiles(64, torch.bfloat16, CUDA) == SAFE
    assert choose_implementation(64, torch.bfloat16, CUDA) == "triton"
    assert choose_warps("add_norm", 4096, torch.bfloat16, CUDA, 8) == 8
    assert choose_tiles(64, torch.bfloat16, torch.device("cpu")) == SAFE
    assert card_of(torch.device("cpu")) is None


def test_a_card_of_the_same_capability_stands_in(on_card: list[Card]) -> None:
    on_card.append(H20)
    assert choose_implementation(64, torch.bfloat16, CUDA) == "hopper"
    assert choose_implementation(64, torch.float32, CUDA) == "triton"
    assert choose_implementation(80, torch.bfloat16, CUDA) == "triton"
    assert choose_tiles(128, torch.bfloat16, CUDA) == Tiles(128, 128, 8, 3)


def test_own_tables_come_first_and_the_same_card_before_a_like_one(
    on_card: list[Card], tmp_path: Path
) -> None:
    write(tmp_path, table(H20, SMALL))
    use_tables(tmp_path)
    # The H200's own shipped entry, though the folder has one of its capability.
    assert choose_tiles(64, torch.bfloat16, CUDA) == Tiles(128, 64, 4, 3)
    on_card.append(H20)
    assert choose_tiles(64, torch.bfloat16, CUDA) == Tiles(**SMALL)
    assert choose_tiles(64, torch.float16, CUDA) == Tiles(128, 64, 4, 3)
    on_card.append(H200)
    write(tmp_path, table(H200, SMALL))
    use_tables(tmp_path)
    assert choose_tiles(64, torch.bfloat16, CUDA) == Tiles(**SMALL)
    use_tables(tmp_path / "not there")
    assert choose_tiles(64, torch.bfloat16, CUDA) == Tiles(128, 64, 4, 3)


def test_what_is_tried_goes_before_all_tables(on_card: list[Card]) -> None:
    with trying("block_attention", SMALL):
        assert choose_tiles(64, torch.bfloat16, CUDA) == Tiles(**SMALL)
        assert choose_tiles(64, torch.bfloat16, torch.device("cpu")) == Tiles(**SMALL)
        assert choose_page_tiles(64, torch.bfloat16, CUDA) == PageTiles(2, 3, 16)
    with pytest.raises(KeyError), trying("page_attention", {}):
        raise KeyError
    assert choose_tiles(64, torch.bfloat16, CUDA) == Tiles(128, 64, 4, 3)
    assert choose_page_tiles(64, torch.bfloat16, CUDA) == PageTiles(2, 3, 16)


def test_a_table_goes_through_its_file(tmp_path: Path) -> None:
    one = table(A100, SMALL)
    assert one.file_name == "nvidia-a100-sxm4-80gb.json"
    assert read_table(write(tmp_path, one)) == one
    newer = replace(one.entries[0], choice={"rows": 64}, attempts=())
    other = replace(newer, width=128)
    assert one.with_entries((newer, other)).entries == (newer, other)
    both = one.with_entries((other,))
    assert both.entries == (*one.entries, other)
    assert read_table(write(tmp_path, both)) == both


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"card": {"name": "x", "capability": [9]}, "entries": []}',
             '{"card": {"name": "x", "capability": [9, 0]}, "entries": [{"op": "a"}]}']
)  # fmt: skip
def test_a_file_that_is_no_table_is_named(text: str, tmp_path: Path, on_card: list[Card]) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text, encoding="utf-8")
    use_tables(tmp_path)
    with pytest.raises(BackendError, match=r"broken\.json is no tuning table.*--tune"):
        choose_tiles(64, torch.bfloat16, CUDA)


@pytest.mark.parametrize("choice", [SMALL | {"rows": 24}, {"rows": 32}, SMALL | {"wings": 2}])
def test_constants_that_the_kernel_refuses_are_told(
    choice: dict[str, int], tmp_path: Path, on_card: list[Card]
) -> None:
    write(tmp_path, table(H200, choice))
    use_tables(tmp_path)
    with pytest.raises(BackendError, match=r"block_attention at width 64.*--tune"):
        choose_tiles(64, torch.bfloat16, CUDA)


def test_an_engine_brings_its_folder(tiny_llama: Path, tmp_path: Path, on_card: list[Card]) -> None:
    write(tmp_path, table(H200, SMALL))
    load_parts(EngineConfig(tiny_llama, precision="float32", kv_budget=8 << 20))
    assert choose_tiles(64, torch.bfloat16, CUDA) == Tiles(128, 64, 4, 3)
    load_parts(
        EngineConfig(tiny_llama, precision="float32", kv_budget=8 << 20, tuning_folder=tmp_path)
    )
    assert choose_tiles(64, torch.bfloat16, CUDA) == Tiles(**SMALL)
    settings = load_settings(model=str(tiny_llama), cache_dir=tmp_path, device="cpu")
    assert engine_config(settings).tuning_folder == tmp_path / FOLDER_NAME
