"""The page-list kernel whose warps have tokens of their own, compiled without a GPU: every layout
that has to be another's without moving a number is, or compiling fails. What it computes is tested
on a GPU, in `test_page_attention` and `test_packed_attention`."""

from __future__ import annotations

from pathlib import Path

import pytest

POINTERS = {
    "data": "i32",
    "scales": "fp32",
    "partial": "fp32",
    "marks": "fp32",
    "used_parts": "i32",
    "refs": "i32",
    "requests": "i32",
    "cos": "fp32",
    "sin": "fp32",
}
CHANGING = {"rows", "asked", "ahead", "entry_row", "scale"}


@pytest.mark.parametrize("width", [64, 128])
@pytest.mark.parametrize(
    ("coding", "kind", "capability"),
    [("plain", "bf16", 80), ("plain", "fp16", 90), ("int8", "bf16", 80), ("fp8", "bf16", 90)],
)
def test_compiles_without_moving_what_was_read(
    coding: str,
    kind: str,
    capability: int,
    width: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It is there on Linux only.
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.experimental.gluon._runtime import GluonASTSource

    from backend.ops.page_attention.warp_part import warp_part_kernel

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    constants = {"GROUP": 4, "HEADS": 32, "WIDTH": width, "ROWS": 8, "PAGE": 64, "LEAST": 2}
    constants |= {"CODING": coding, "EACH": True, "STAGES": 3, "LISTS": 32}
    names = warp_part_kernel.arg_names
    types = {"q": f"*{kind}", "scale": "fp32"} | {n: f"*{t}" for n, t in POINTERS.items()}
    source = GluonASTSource(
        fn=warp_part_kernel,
        signature={n: "constexpr" if n in constants else types.get(n, "i32") for n in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={
            (place,): [["tt.divisibility", 16]]
            for place, name in enumerate(names)
            if name not in constants and name not in CHANGING
        },
    )
    compiled = triton.compile(
        source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4}
    )
    ptx = compiled.asm["ptx"]
    kinds = "bf16.bf16" if (coding, kind) == ("plain", "bf16") else "f16.f16"
    # Keys by queries, values by weights: each channel once for sixteen tokens of four warps.
    assert ptx.count(f"mma.sync.aligned.m16n8k16.row.col.f32.{kinds}.f32") == width // 8
    assert ("cvt.rn.f16x2.e4m3x2" in ptx) == (coding == "fp8")
    # Of a cell as much at a time as a thread takes of a row, before and in the loop.
    words = 2 if width == 64 and coding != "plain" else 4
    size = f"{4 * words:#x}"
    copies = width // words * (1 if coding != "plain" else 2) // 4
    assert ptx.count(f", {size}, {size};") >= 2 * copies
