"""The default model: our logits against transformers', same weights, real contract text."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from backend.loader import Checkpoint, load_checkpoint
from backend.models import build_decoder
from backend.runner import Runner
from kvstore.pool import PagePool
from kvstore.types import KVShape, PageTable
from retrieval.parse import parse_file

SAMPLES = Path(__file__).parents[3] / "samples"
pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def checkpoint(default_model: Path) -> Checkpoint:
    return load_checkpoint(default_model)


@pytest.fixture(scope="module")
def tokens(checkpoint: Checkpoint) -> list[int]:
    text = parse_file(next(SAMPLES.glob("*en*.pdf")), "contract.pdf").text
    return checkpoint.tokenizer.encode(text[8000:12000])[:512]


@pytest.fixture(scope="module")
def expected(checkpoint: Checkpoint, tokens: list[int]) -> torch.Tensor:
    ours = checkpoint.config
    config = LlamaConfig(
        vocab_size=ours.vocab_size,
        hidden_size=ours.hidden_size,
        intermediate_size=ours.intermediate_size,
        num_hidden_layers=ours.layers,
        num_attention_heads=ours.heads,
        num_key_value_heads=ours.kv_heads,
        max_position_embeddings=ours.max_positions,
        rms_norm_eps=ours.rms_eps,
        rope_parameters={"rope_type": "default", "rope_theta": ours.rope_theta},
        tie_word_embeddings=ours.tie_embeddings,
    )
    model = LlamaForCausalLM(config).eval()
    weights = {name: checkpoint.tensors[name] for name in checkpoint.tensors}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert set(missing) <= {"lm_head.weight"}
    assert not unexpected
    with torch.inference_mode():
        return model(torch.tensor(tokens)[None]).logits[0]


def logits(checkpoint: Checkpoint, precision: str, tokens: list[int]) -> torch.Tensor:
    decoder = build_decoder(checkpoint, precision, torch.device("cpu"))  # type: ignore[arg-type]
    config = decoder.config
    shape = KVShape(config.layers, config.kv_heads, config.head_dim)
    runner = Runner(decoder, PagePool(shape, 1, decoder.compute_dtype))
    context = runner.open_context((), [], PageTable(()))
    return runner.logits(runner.extend([context], [tokens])[0])


def test_float32_agrees_with_transformers(
    checkpoint: Checkpoint, tokens: list[int], expected: torch.Tensor
) -> None:
    ours = logits(checkpoint, "float32", tokens)
    assert len(tokens) == 512
    agreement = (ours.argmax(-1) == expected.argmax(-1)).float().mean()
    assert agreement >= 0.995
    torch.testing.assert_close(ours, expected, atol=2e-3, rtol=1e-3)


def test_int8_stays_close(
    checkpoint: Checkpoint, tokens: list[int], expected: torch.Tensor
) -> None:
    target = torch.tensor(tokens[1:])[:, None]
    exact = expected.log_softmax(-1)
    small = logits(checkpoint, "int8", tokens).log_softmax(-1)
    loss = (exact[:-1].gather(1, target) - small[:-1].gather(1, target)).mean()
    assert abs(float(loss)) < 0.05
    assert (small.argmax(-1) == exact.argmax(-1)).float().mean() > 0.88
