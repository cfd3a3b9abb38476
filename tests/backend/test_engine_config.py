"""What an engine's settings stand for, without an engine."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from app.services import engine_config
from app.settings import load_settings
from backend.engine_config import EngineConfig


def test_engines_that_compute_few_rows_otherwise_have_kv_of_their_own(tmp_path: Path) -> None:
    def name(device: str, linear_format: str, few_rows: str) -> str:
        config = EngineConfig(
            tmp_path, device=device, precision="bfloat16", linear_format=linear_format,  # type: ignore[arg-type]
            few_rows=few_rows,  # type: ignore[arg-type]
        )  # fmt: skip
        return config.kv_name("bf16")

    found = {
        choice: name("cuda", *choice)
        for choice in product(("dense", "fp8"), ("library", "fp8", "all"))
    }
    assert found["dense", "library"] == found["dense", "fp8"] == "bfloat16/bf16/independent"
    assert found["dense", "all"] == "bfloat16+few-rows/bf16/independent"
    assert found["fp8", "library"] == "bfloat16+fp8/bf16/independent"
    assert found["fp8", "fp8"] == found["fp8", "all"] == "bfloat16+fp8+few-rows/bf16/independent"
    assert name("cpu", "dense", "all") == name("cpu", "dense", "library")


@pytest.mark.parametrize("chosen", [None, "fp8", "all", "library"])
def test_few_rows_come_from_the_settings(chosen: str | None, tiny_llama: Path) -> None:
    settings = load_settings(model=str(tiny_llama), device="cpu", few_rows=chosen)
    usual = EngineConfig(tiny_llama).few_rows
    assert engine_config(settings).few_rows == (chosen or usual)
