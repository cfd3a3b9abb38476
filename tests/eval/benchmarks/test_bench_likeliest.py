"""Cases of the likeliest token: every vocabulary that is known, and the same work for both."""

from __future__ import annotations

from functools import partial
from typing import cast

import torch

from eval.benchmarks.kernels.case import SHAPES, ModelShape, Setup
from eval.benchmarks.kernels.cases import likeliest
from eval.benchmarks.kernels.registry import find_ops

CPU = torch.device("cpu")


def test_without_a_gpu_there_is_no_case() -> None:
    (make,) = find_ops(("likeliest",)).values()
    assert list(make(Setup(CPU, 1, SHAPES["cuda"]))) == []


def test_contenders_look_at_the_same_logits() -> None:
    setup = Setup(CPU, 3, (ModelShape("small", 2, 3, 64, 128, 192, 300),))
    case = likeliest._case(setup, "small", 3, 300, timed=False)
    ours, peer = case.contenders
    assert (ours.peer, peer.peer) == (False, True)
    assert ours.bytes == peer.bytes == 2 * 3 * 300
    tokens = case.reference()
    assert tokens.shape == (3,)
    assert torch.equal(peer.call(), tokens)
    kernel = cast("partial[torch.Tensor]", cast("partial[torch.Tensor]", ours.call).args[0])
    assert kernel.keywords == {"impl": "triton"}
    logits = kernel.args[0]
    assert torch.equal(tokens, logits.float().argmax(-1).int())
