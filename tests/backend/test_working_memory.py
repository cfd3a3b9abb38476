"""What a request needs of memory beside the pool, by the model's shape."""

from __future__ import annotations

import pytest
import torch

from backend.config import ModelConfig
from backend.errors import RequestTooLarge
from backend.hardware.types import Memory
from backend.working_memory import WorkingMemory
from kvstore.types import KVShape

CONFIG = ModelConfig(
    family="llama",
    hidden_size=60,
    layers=3,
    heads=6,
    kv_heads=2,
    head_dim=10,
    intermediate_size=84,
    vocab_size=600,
    rms_eps=1e-5,
    rope_theta=10_000.0,
    rope_scaling=None,
    max_positions=4096,
    tie_embeddings=True,
    attention_bias=False,
    bos_id=1,
    eos_ids=(2,),
)
TOKEN = 3 * 2 * 2 * 10 * 4


CPU = torch.device("cpu")


def memory(free: int, total: int = 10**12, paged_tokens: int = 0) -> WorkingMemory:
    return WorkingMemory(
        CONFIG,
        KVShape(3, 2, 10),
        torch.float32,
        CPU,
        512,
        paged_tokens=paged_tokens,
        look=lambda _: Memory(free, total),
    )


def test_a_context_and_its_copies_are_counted() -> None:
    needs = memory(0)
    assert needs.growth(100) == 100 * TOKEN
    assert needs.needed(0, 0) < needs.needed(0, 1000) < needs.needed(1000, 1000)
    assert needs.needed(2000, 0) - needs.needed(1000, 0) >= 3 * 1000 * TOKEN
    assert needs.needed(0, 2000) - needs.needed(0, 1000) >= 1000 * TOKEN * 3 // 2


def test_a_context_in_pages_takes_none_of_its_own() -> None:
    needs = memory(0, paged_tokens=4096)
    assert needs.needed(2000, 500) == 0 < memory(0).needed(10, 10)
    needs.require_ever(2000, 500)
    assert needs.lacking(0, promised=10**13) is None, "nothing is asked of the device"
    assert needs.needed(4000, 500) == memory(0).needed(4000, 500)


def test_what_the_device_can_never_hold_is_refused() -> None:
    needed = memory(0).needed(1000, 100)
    memory(0, total=2 * needed).require_ever(1000, 100)
    with pytest.raises(RequestTooLarge, match=r"1,100 tokens .* altogether: send a shorter"):
        memory(0, total=needed).require_ever(1000, 100)


def test_what_is_not_free_now_is_told_with_what_to_do() -> None:
    needs = memory(free=10**9, total=2 * 10**9)
    assert needs.lacking(9 * 10**8) is None
    lacking = needs.lacking(9 * 10**8, promised=10**8)
    assert lacking is not None
    assert "900 MB" in str(lacking) and "1,000 MB are free" in str(lacking)
    assert "FINEPRINT_KV_BUDGET_MB" in str(lacking)


def test_where_nothing_is_known_nothing_is_refused() -> None:
    shape = KVShape(3, 2, 10)
    blind = WorkingMemory(CONFIG, shape, torch.float32, CPU, 512, look=lambda _: None)
    blind.require_ever(10**9, 10**9)
    assert blind.lacking(10**18) is None
