"""The scripts behind docs/benchmarks/load-clients.md."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up while they are made.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.model
def test_the_folder_is_the_models_tokenizer(default_model: Path, tmp_path: Path) -> None:
    import tokenizers
    from transformers import AutoTokenizer

    from backend.loader.gguf import load_gguf

    load("tokenizer_folder").write(default_model, tmp_path)
    ours = load_gguf(default_model).tokenizer
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    for text in ("The price is EUR 1,250,000.00.", "第十二条 乙方应当支付全部价款。", "  a\n\n\tb"):
        assert theirs.encode(text) == ours.encode(text)
    chat = [{"role": "user", "content": "Price?"}]
    rendered = theirs.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert rendered == ours.chat(chat)
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    text = load("load_clients").words(tokenizer, 512, random.Random(1))
    assert abs(len(ours.encode(text)) - 512) <= 2


def test_means_between_two_scrapes() -> None:
    clients = load("load_clients")
    text = """
fineprint_completion_ttft_seconds_sum{level="engine"} %s
fineprint_completion_ttft_seconds_count{level="engine"} %s
fineprint_completion_ttft_seconds_sum{level="gateway"} %s
fineprint_completion_ttft_seconds_count{level="gateway"} %s
fineprint_completion_seconds_per_token_sum %s
fineprint_completion_seconds_per_token_count %s
"""
    before, after = (
        {name: float(value) for name, value in clients._SAMPLE.findall(text % numbers)}
        for numbers in ((1, 2, 1, 2, 0.5, 2), (3, 6, 3.4, 6, 1.5, 6))
    )
    assert clients.between(before, after) == pytest.approx(
        {"requests": 4, "engine_ttft_ms": 500, "gateway_ttft_ms": 600, "engine_itl_ms": 250}
    )
    assert clients.between({}, before)["engine_ttft_ms"] == 500


def test_spread_is_by_rank() -> None:
    spread = load("load_clients").spread
    assert spread(range(1, 101)) == {"mean": 50.5, "p50": 50.5, "p95": 95}
    assert spread([7.0]) == {"mean": 7.0, "p50": 7.0, "p95": 7.0}
