"""Latent attention: absorbed against heads that are made of the latents, tiles and blocks against
the specification."""

from __future__ import annotations

import pytest
import torch

from backend.layers.rope import rotate_tail
from backend.ops.block_attention import BlockRead, ReadPlan, plan_reads
from backend.ops.latent_attention import Implementation, latent_attention
from backend.ops.latent_block_attention import latent_block_attention

RANK, ROTATED = 24, 8
SCALE = 0.3


def random(*size: int, seed: int = 1, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed)).to(dtype)


def test_absorbed_is_what_heads_made_of_the_latents_read() -> None:
    heads, new, length, plain, value = 3, 5, 17, 6, 7
    q = random(new, heads, plain + ROTATED)
    kept = random(length, RANK + ROTATED, seed=2)
    keys_of, values_of = random(heads, plain, RANK, seed=3), random(heads, RANK, value, seed=4)
    absorbed = torch.cat(
        (torch.einsum("nhd,hdr->nhr", q[..., :plain], keys_of), q[..., plain:]), -1
    )
    read = latent_attention(absorbed, kept, RANK, SCALE, impl="reference")
    ours = torch.einsum("nhr,hrv->nhv", read, values_of)
    latents, shared = kept[:, :RANK], kept[:, RANK:]
    for head in range(heads):
        keys = torch.cat((latents @ keys_of[head].t(), shared), 1)
        values = latents @ values_of[head]
        for row in range(new):
            seen = length - new + row + 1
            weights = (q[row, head] @ keys[:seen].t() * SCALE).softmax(-1)
            torch.testing.assert_close(ours[row, head], weights @ values[:seen])


@pytest.mark.parametrize(("new", "prefix"), [(1, 0), (1, 300), (63, 0), (129, 1), (700, 65)])
@pytest.mark.parametrize("heads", [1, 16])
def test_tiles_give_what_the_specification_gives(new: int, prefix: int, heads: int) -> None:
    q = random(new, heads, RANK + ROTATED)
    # As in a context: rows of a longer buffer.
    kept = random(prefix + new + 50, RANK + ROTATED, seed=2)[: prefix + new]
    expected = latent_attention(q, kept, RANK, SCALE, impl="reference")
    ours = latent_attention(q, kept, RANK, SCALE, impl="tiled")
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_tiles_in_16_bit_stay_close() -> None:
    q = random(70, 4, RANK + ROTATED, dtype=torch.bfloat16)
    kept = random(200, RANK + ROTATED, seed=2, dtype=torch.bfloat16)
    expected = latent_attention(q.double(), kept.double(), RANK, SCALE, impl="reference")
    ours = latent_attention(q, kept, RANK, SCALE, impl="tiled").double()
    assert (ours - expected).norm() / expected.norm() < 1e-2


@pytest.mark.parametrize("impl", ["reference", "tiled"])
def test_shapes_that_do_not_fit_are_refused(impl: Implementation) -> None:
    q, kept = random(4, 2, 32), random(9, 32)
    for wrong in ((q, kept[:3], RANK), (q[..., :30], kept, RANK), (q, kept, 33), (q, kept, 0)):
        with pytest.raises(ValueError, match="latents"):
            latent_attention(*wrong, SCALE, impl=impl)
    with pytest.raises(ValueError, match="dtype"):
        latent_attention(q, kept.double(), RANK, SCALE, impl=impl)


def tables(positions: int) -> tuple[torch.Tensor, torch.Tensor]:
    angles = torch.outer(torch.arange(positions).float(), 0.7 ** torch.arange(ROTATED / 2))
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)


def make_plan() -> tuple[ReadPlan, int]:
    """Three blocks with sinks, anchors (two of them in the launch itself) and a lead."""
    listed = torch.tensor([0, 1, 2, 7, 45])
    blocks = [
        BlockRead(0, 33, seen=3),
        BlockRead(33, 34, seen=4),
        BlockRead(34, 101, seen=5, lead=10),
    ]
    return plan_reads(blocks, [listed], extra_rows=5), 5


def test_each_block_reads_its_rows_at_its_positions() -> None:
    plan, rows = make_plan()
    q, kept = random(plan.tokens, 3, RANK + ROTATED), random(plan.tokens, RANK + ROTATED, seed=2)
    extra = random(rows, RANK + ROTATED, seed=3)
    cos, sin = tables(plan.positions)
    read = latent_block_attention(
        q, kept, plan, RANK, SCALE, extra=extra, cos=cos, sin=sin, impl="reference"
    )
    both = torch.cat((extra, kept))
    seen = both[[0, 1, 2, 7, 45, *range(rows + 24, rows + 101)]]
    positions = torch.arange(len(seen))
    turned = rotate_tail(seen, cos[positions], sin[positions])
    for token, place in ((34, 15), (100, 81)):
        asked = rotate_tail(q[token], cos[place], sin[place])
        weights = (asked @ turned[: place + 1].t() * SCALE).softmax(-1)
        torch.testing.assert_close(read[token], weights @ turned[: place + 1, :RANK])


def test_blocks_that_do_not_fit_are_refused() -> None:
    plan, rows = make_plan()
    q, kept = random(plan.tokens, 3, RANK + ROTATED), random(plan.tokens, RANK + ROTATED)
    extra = random(rows, RANK + ROTATED)
    cos, sin = tables(plan.positions)
    good = {"extra": extra, "cos": cos, "sin": sin, "impl": "reference"}
    for change, pattern in (
        ({"extra": None}, "extra rows"),
        ({"extra": extra.double()}, "dtype"),
        ({"cos": cos[:-1]}, "positions"),
        ({"sin": sin[:, :4]}, "positions"),
        ({"cos": cos.double()}, "float32"),
    ):
        with pytest.raises(ValueError, match=pattern):
            latent_block_attention(q, kept, plan, RANK, SCALE, **{**good, **change})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="don't fit"):
        latent_block_attention(q[:5], kept, plan, RANK, SCALE, **good)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rotated"):
        latent_block_attention(q, kept, plan, 31, SCALE, **good)  # type: ignore[arg-type]
