"""A call as a CUDA graph, so that what is timed is the GPU and not the host that launches it."""

from __future__ import annotations

import torch

from eval.benchmarks.kernels.case import Call


class Recorded:
    """The call, which is recorded when it is first made and replayed then and from then on. What it
    returns is overwritten by the next."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._graph: torch.cuda.CUDAGraph | None = None
        self._out: torch.Tensor | None = None

    def __call__(self) -> torch.Tensor:
        if self._graph is None or self._out is None:
            # What a kernel needs at its first launch can't be recorded.
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self._call()
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda.synchronize()
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._out = self._call()
        self._graph.replay()
        return self._out


def recorded(call: Call, device: torch.device) -> Call:
    """The call recorded on a GPU, and itself elsewhere."""
    return Recorded(call) if device.type == "cuda" else call
