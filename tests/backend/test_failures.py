"""What is told of a failure in a step."""

from __future__ import annotations

import pytest
import torch

from backend.failures import describe_failure, is_shortage


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate"
                     " memory: you tried to allocate 9 bytes"),
    ],
)  # fmt: skip
def test_a_shortage_says_what_to_do(error: Exception) -> None:
    told = describe_failure(error)
    assert "ran out of memory" in told and "FINEPRINT_KV_BUDGET_MB" in told
    assert "\n" not in told


def test_torchs_own_words_are_known() -> None:
    with pytest.raises(RuntimeError) as raised:
        torch.empty(2**50, dtype=torch.uint8)
    assert is_shortage(raised.value), str(raised.value)


def test_other_failures_are_told_as_they_are() -> None:
    assert describe_failure(ValueError("the device is lost")) == "the device is lost"
    assert describe_failure(KeyError()) == "KeyError"
    assert not is_shortage(RuntimeError("out of luck"))
