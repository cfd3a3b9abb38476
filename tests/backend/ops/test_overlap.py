"""Kernels that overlap: compiled for a GPU that need not be there, they wait before they touch what
others write."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from backend.engine_config import EngineConfig
from backend.ops import overlap
from backend.ops.add_norm import add_norm
from backend.ops.few_rows_linear import LinearTiles, few_rows_linear
from backend.ops.gated_unit import gated_unit
from backend.ops.overlap import launch_options, overlap_launches
from backend.parts import load_parts

if os.environ.get("TRITON_INTERPRET") == "1":
    pytest.skip("nothing is compiled under the interpreter", allow_module_level=True)

CUDA, CPU = torch.device("cuda"), torch.device("cpu")
TOUCH = r"(?:ld\.global|st\.global|cp\.async\.c[ag])\S*"
LINEAR = {"WIDTH": 512, "OUTPUTS": 96, "BIASED": True, "NATIVE": True, "AHEAD": 512, "OUTS": 16}
KERNELS: dict[str, dict[str, Any]] = {
    "add_norm.kernel:_add_norm_kernel": {"WIDTH": 60, "PADDED": 64, "ADDS": True},
    "gated_unit.kernel:_gated_kernel": {"WIDTH": 60, "STRETCH": 64},
    "page_write.kernel:_write_kernel": {"WIDTH": 64, "PADDED": 64, "PAGE": 64},
    "page_attention.merge:merge_kernel": {
        "HEADS": 4, "WIDTH": 64, "PADDED": 64, "PARTS": 16, "PACKED": True,
    },
    "page_attention.part:part_kernel": {
        "GROUP": 4, "HEADS": 8, "WIDTH": 64, "PADDED": 64, "ROWS": 16, "PAGE": 64, "LEAST": 2,
        "CODING": "plain", "EACH": True, "NATIVE": True,
    },
    "few_rows_linear.kernel:_rows_kernel": LINEAR | {"FP8": True, "ROWS": 1, "INS": 128},
    "few_rows_linear.kernel:_row_kernel": LINEAR | {"FP8": False, "INS": 512, "STAGES": 3},
}  # fmt: skip
INTS = ("begins", "ends", "refs", "requests", "used_parts")
FLOATS = ("weight", "partial", "marks", "cos", "sin")
NUMBERS = {"eps": "fp32", "scale": "fp32"}


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    overlap_launches(False)


def compiled(name: str, on: bool) -> str:
    """PTX for compute capability 9.0."""
    import importlib

    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    module, _, kernel = name.partition(":")
    function = getattr(importlib.import_module(f"backend.ops.{module}"), kernel)
    constants = KERNELS[name] | {"OVERLAP": on}
    linear = kernel in ("_rows_kernel", "_row_kernel")
    signature = {}
    for argument in function.arg_names:
        if argument in constants:
            kind = "constexpr"
        elif argument in INTS:
            kind = "*i32"
        elif linear and argument == "weight":
            kind = "*u8" if constants["FP8"] else "*bf16"
        elif linear and argument == "scale":
            kind = "*fp32"
        elif argument in NUMBERS:
            kind = NUMBERS[argument]
        elif argument in FLOATS:
            kind = "*fp32"
        elif argument in ("x", "bias", "out", "q", "k", "v", "data", "words", "both", "stream",
                          "delta", "normed"):  # fmt: skip
            kind = "*bf16"
        else:
            kind = "i32"
        signature[argument] = kind
    source = ASTSource(
        fn=function,
        signature=signature,
        constexprs={(function.arg_names.index(key),): value for key, value in constants.items()},
    )
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    text = made.asm["ptx"]
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_waits_before_it_touches_anything(name: str) -> None:
    text = compiled(name, True)
    (wait,) = [found.start() for found in re.finditer(r"griddepcontrol\.wait", text)]
    (start,) = [found.start() for found in re.finditer(r"griddepcontrol\.launch", text)]
    touched = [found.start() for found in re.finditer(TOUCH, text)]
    assert touched
    assert start < wait < min(touched)
    # No way out of the kernel before it has waited: who comes after waits for this one alone.
    assert not re.search(r"\bret;|\bbra", text[text.index("{") : wait])
    asked = [found.start() for found in re.finditer(r"prefetch\.global\.L2", text)]
    assert bool(asked) == name.startswith("few_rows")
    assert all(place < wait for place in asked)


@pytest.mark.parametrize("name", list(KERNELS)[-2:])
def test_without_the_switch_nothing_overlaps(name: str) -> None:
    text = compiled(name, False)
    assert "griddepcontrol" not in text
    assert "prefetch" not in text


def test_what_can_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    capability = [(9, 0)]
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability[0])
    assert launch_options(CUDA) == {"OVERLAP": False}
    overlap_launches(True)
    assert launch_options(CUDA) == {"OVERLAP": True, "launch_pdl": True}
    assert launch_options(CPU) == {"OVERLAP": False}
    capability[0] = (8, 9)
    assert launch_options(CUDA) == {"OVERLAP": False}


def test_an_engine_says_whether(tiny_llama: Any) -> None:
    config = EngineConfig(tiny_llama, precision="float32", kv_budget=8 << 20)
    for on in (True, False):
        load_parts(replace(config, overlapped_launches=on))
        assert overlap._overlapping == [on]


@pytest.mark.gpu
def test_a_recorded_chain_gives_the_same() -> None:
    """Each kernel reads what the one before it wrote, over and over."""
    tiles = LinearTiles(outputs=16, inputs=256, warps=2, stages=4)
    generator = torch.Generator(CUDA).manual_seed(1)

    def normal(*size: int) -> torch.Tensor:
        drawn = torch.randn(*size, device=CUDA, generator=generator)
        return (drawn * size[-1] ** -0.5).bfloat16()

    wide, narrow = normal(8192, 1024), normal(1024, 4096)
    gain, first = torch.ones(1024, device=CUDA), normal(4, 1024) * 32

    def chain() -> torch.Tensor:
        stream, given = first.clone(), None
        for _ in range(24):
            stream, normed = add_norm(stream, given, gain, 1e-5, impl="triton")
            both = few_rows_linear(normed, wide, impl="triton", tiles=tiles)
            given = few_rows_linear(
                gated_unit(both, impl="triton"), narrow, impl="triton", tiles=tiles
            )
        return add_norm(stream, given, gain, 1e-5, impl="triton")[1]

    expected = chain()
    overlap_launches(True)
    assert torch.equal(chain(), expected)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = chain()
    for _ in range(50):
        out.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(out, expected)
