"""Checkpoints in AWQ's layout: they run as the same model with dense weights does, their weights
stay packed, and what is quantised in another way is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.errors import BackendError, CheckpointError
from backend.layers.awq import AwqLinear
from backend.layers.linear import DenseLinear, Linear, Precision
from backend.loader import load_checkpoint
from backend.loader.awq import AwqTensors
from backend.models import build_decoder
from backend.models.layers import Layer
from backend.types import DocumentTokens, Request, SamplingParams

GROUP = 128
ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
CPU = torch.device("cpu")
QUESTION = tuple(range(40, 70))


def _pack(codes: torch.Tensor) -> torch.Tensor:
    nibbles = codes.long().unflatten(1, (-1, 8))[:, :, list(ORDER)]
    packed = (nibbles << torch.arange(0, 32, 4)).sum(-1)
    return torch.where(packed >= 2**31, packed - 2**32, packed).to(torch.int32)


def _quantised(weight: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Zero point and scale by group, as AutoAWQ's pseudo_quantize_tensor; the packed tensors and
    the weight [out, in] that they stand for."""
    groups = weight.float().unflatten(1, (-1, GROUP))
    low, high = groups.aminmax(dim=-1)
    scales = ((high - low).clamp_min(1e-5) / 15).half().float()
    zeros = (-(low / scales).round()).clamp(0, 15)
    codes = ((groups / scales[..., None]).round() + zeros[..., None]).clamp(0, 15)
    dense = (codes - zeros[..., None]) * scales[..., None]
    packed = {
        "qweight": _pack(codes.flatten(1).t()),
        "qzeros": _pack(zeros.t()),
        "scales": scales.t().contiguous().half(),
    }
    return packed, dense.flatten(1)


@pytest.fixture(scope="module")
def folders(
    tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[tuple[str, ...]], tuple[Path, Path]]:
    """Makes (packed, dense) folders of one model, with modules that are left as they are."""
    made: dict[tuple[str, ...], tuple[Path, Path]] = {}

    def make(plain: tuple[str, ...] = ()) -> tuple[Path, Path]:
        if plain not in made:
            made[plain] = _folders(tiny_llama, tmp_path_factory.mktemp("awq"), plain)
        return made[plain]

    return make


def _folders(tiny_llama: Path, parent: Path, plain: tuple[str, ...]) -> tuple[Path, Path]:
    config = LlamaConfig(
        vocab_size=json.loads((tiny_llama / "config.json").read_text("utf-8"))["vocab_size"],
        hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=2048, tie_word_embeddings=False,
        bos_token_id=1, eos_token_id=2, initializer_range=0.2,
    )  # fmt: skip
    dense, packed = parent / "dense", parent / "packed"
    with torch.random.fork_rng():
        torch.manual_seed(5)
        LlamaForCausalLM(config).save_pretrained(dense)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tiny_llama / name, dense / name)
    shutil.copytree(dense, packed)
    weights: dict[str, torch.Tensor] = load_file(dense / "model.safetensors")
    stored: dict[str, torch.Tensor] = {}
    for name, weight in list(weights.items()):
        module = name.removesuffix(".weight")
        if module.endswith("_proj") and not module.endswith(plain):
            parts, weights[name] = _quantised(weight)
            stored |= {f"{module}.{part}": tensor for part, tensor in parts.items()}
        else:
            stored[name] = weight
    save_file({name: tensor.contiguous() for name, tensor in weights.items()},
              dense / "model.safetensors", {"format": "pt"})  # fmt: skip
    save_file(stored, packed / "model.safetensors", {"format": "pt"})
    _set(packed, {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True,
                  "version": "gemm", "modules_to_not_convert": list(plain) or None})  # fmt: skip
    return packed, dense


def _set(folder: Path, quantisation: object) -> None:
    path = folder / "config.json"
    raw = json.loads(path.read_text("utf-8")) | {"quantization_config": quantisation}
    path.write_text(json.dumps(raw), encoding="utf-8")


def _linears(folder: Path, precision: Precision) -> list[Linear]:
    layers = build_decoder(load_checkpoint(folder), precision, CPU)._narrow
    found: list[Linear] = []
    for layer in layers:
        assert isinstance(layer, Layer)
        found += [layer.qkv, layer.out, layer.mlp.gate_up, layer.mlp.down]
    return found


Said = tuple[list[int | None], tuple[float, ...]]


def _said(folder: Path, precision: Precision, device: str = "cpu") -> Said:
    """Tokens of an answer from evidence pages, and log-probabilities of given ones."""
    budget = 8 << 20 if device == "cpu" else 64 << 20
    config = EngineConfig(
        folder, device=device, precision=precision, block_tokens=64, kv_budget=budget
    )
    with closing(Engine.open(config)) as engine:
        tokens = tuple(3 + (i * 7) % 500 for i in range(300))
        document = DocumentTokens("d", tokens, engine.split_blocks(300), sinks=(10, 11))
        engine.read(document).wait(60)
        request = Request("q", QUESTION, SamplingParams(max_tokens=12, ignore_eos=True), "d",
                          ((0, 200),))  # fmt: skip
        said = [event.token_id for event in engine.generate(request)]
        return said, engine.score(
            QUESTION, tokens[50:80], document_key="d", evidence=((0, 100), (150, 300))
        )


@pytest.mark.parametrize(("precision", "near"), [("float32", 1e-4), ("bfloat16", 0.25)])
@pytest.mark.parametrize("plain", [(), ("down_proj", "k_proj")])
def test_it_runs_as_the_dense_model_does(
    folders: Any, plain: tuple[str, ...], precision: Precision, near: float
) -> None:
    packed, dense = folders(plain)
    (mine, scores), (theirs, expected) = _said(packed, precision), _said(dense, precision)
    assert scores == pytest.approx(expected, abs=near)
    if precision == "float32":
        assert mine == theirs
    assert len(set(scores)) > 20


@pytest.mark.gpu
@pytest.mark.parametrize(("precision", "near"), [("float32", 1e-3), ("bfloat16", 0.25)])
def test_a_gpu_runs_it_as_the_dense_model(folders: Any, precision: Precision, near: float) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    packed, dense = folders(())
    (mine, scores), (theirs, expected) = (
        _said(folder, precision, "cuda") for folder in (packed, dense)
    )
    assert scores == pytest.approx(expected, abs=near)
    if precision == "float32":
        assert mine == theirs


def test_weights_stay_packed_in_attention_and_mlp(folders: Any) -> None:
    packed, dense = folders(())
    mine = _linears(packed, "bfloat16")
    assert len(mine) == 8 and all(isinstance(one, AwqLinear) for one in mine)
    plain = [one for one in _linears(dense, "bfloat16") if isinstance(one, DenseLinear)]
    held = sum(
        part.nbytes
        for one in mine
        if isinstance(one, AwqLinear)
        for part in (one.weight.codes, one.weight.zeros, one.weight.scales)
    )
    assert len(plain) == 8
    assert held < 0.27 * sum(one.weight.nbytes for one in plain)
    # One module of a joint layer that is not packed keeps the layer dense.
    kinds = [type(one) for one in _linears(folders(("down_proj", "k_proj"))[0], "bfloat16")]
    assert kinds == 2 * [DenseLinear, AwqLinear, AwqLinear, DenseLinear]


def test_int8_makes_them_dense_once(folders: Any) -> None:
    packed, dense = folders(())
    assert not any(isinstance(one, AwqLinear) for one in _linears(packed, "int8"))
    (_, scores), (_, expected) = _said(packed, "int8"), _said(dense, "int8")
    assert scores == pytest.approx(expected, abs=1e-3)


def test_tensors_have_plain_names(folders: Any) -> None:
    packed, dense = (load_checkpoint(folder).tensors for folder in folders(()))
    assert isinstance(packed, AwqTensors) and not isinstance(dense, AwqTensors)
    assert sorted(packed) == sorted(dense) and len(packed) == len(dense)
    for name in dense:
        assert torch.equal(packed[name].float(), dense[name].float()), name
    with pytest.raises(KeyError):
        packed["model.layers.9.mlp.up_proj.weight"]


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ({"quant_method": "gptq", "bits": 4}, "another program"),
        ({"quant_method": "awq", "bits": 8}, "bits 8"),
        ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "version 'gemv'"),
        ({"quant_method": "awq", "zero_point": False}, "zero_point False"),
        ("awq", "another program"),
    ],
)
def test_what_is_quantised_otherwise_is_refused(
    folders: Any, tmp_path: Path, setting: object, problem: str
) -> None:
    shutil.copytree(folders(())[0], tmp_path / "odd")
    _set(tmp_path / "odd", setting)
    with pytest.raises(CheckpointError, match=problem):
        load_checkpoint(tmp_path / "odd")


@pytest.mark.parametrize("part", ["qweight", "qzeros", "scales"])
def test_parts_that_do_not_fit_are_refused(folders: Any, tmp_path: Path, part: str) -> None:
    shutil.copytree(folders(())[0], tmp_path / "cut")
    path = tmp_path / "cut" / "model.safetensors"
    stored = load_file(path)
    name = f"model.layers.1.mlp.up_proj.{part}"
    stored[name] = stored[name][:, :-1].contiguous()
    save_file(stored, path, {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"packed tensors of model\.layers\.1\.mlp\.up_proj"):
        load_checkpoint(tmp_path / "cut")
    del stored[name]
    save_file(stored, path, {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"up_proj"):
        load_checkpoint(tmp_path / "cut")


def test_fp8_products_are_refused(folders: Any) -> None:
    with pytest.raises(BackendError, match="4 bits"):
        build_decoder(load_checkpoint(folders(())[0]), "bfloat16", CPU, "fp8")
