"""The likeliest token of rows of logits: the kernel against the reference, and what is odd."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import pytest
import torch

from backend.ops.likeliest import likeliest

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# The interpreter gets bf16 wrong without a word (triton 3.7), so it is given float16.
ROUNDED = torch.float16 if INTERPRETED else torch.bfloat16
INF, NAN = math.inf, math.nan
kernels = pytest.mark.usefixtures("device") if INTERPRETED else pytest.mark.gpu


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the kernels run; fresh memory is full of what is no number."""
    if not INTERPRETED and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    empty = torch.empty

    def poisoned(*size: object, **options: object) -> torch.Tensor:
        made: torch.Tensor = empty(*size, **options)  # type: ignore[call-overload]
        return made.fill_(float("nan") if made.dtype.is_floating_point else -7)

    monkeypatch.setattr(torch, "empty", poisoned)
    return "cpu" if INTERPRETED else "cuda"


def told(pairs: torch.Tensor) -> tuple[list[int], torch.Tensor]:
    assert pairs.dtype == torch.int32
    pairs = pairs.cpu()
    return pairs[:, 0].tolist(), pairs[:, 1].contiguous().view(torch.float32)


def compare(logits: torch.Tensor) -> None:
    expected = told(likeliest(logits, impl="reference"))
    found = told(likeliest(logits, impl="triton"))
    assert found[0] == expected[0]
    torch.testing.assert_close(found[1], expected[1], rtol=1e-6, atol=4e-6, equal_nan=True)


@kernels
@pytest.mark.parametrize("dtype", [torch.float32, ROUNDED])
@pytest.mark.parametrize(
    ("rows", "vocab"),
    [(1, 1), (3, 37), (2, 2048), (1, 2049), (16, 5001), (1, 128_256), (5, 49_152)],
)
def test_likeliest(rows: int, vocab: int, dtype: torch.dtype, device: str) -> None:
    seeded = torch.Generator().manual_seed(vocab)
    # Of so many numbers in 16 bits several are the largest.
    compare((torch.randn(rows, vocab, generator=seeded) * 5).to(device, dtype))


@kernels
def test_the_first_of_equal_ones(device: str) -> None:
    logits = torch.zeros(4, 7000, device=device)
    logits[1, [2100, 30, 6999]] = 1.0
    logits[2, [6000, 4096]] = 88.0
    logits[3] = -1000.0
    assert told(likeliest(logits, impl="triton"))[0] == [0, 30, 4096, 0]
    compare(logits)


@kernels
# Of numpy, in the interpreter.
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("dtype", [torch.float32, ROUNDED])
def test_what_is_no_number(dtype: torch.dtype, device: str) -> None:
    logits = torch.arange(9 * 5000, device=device).reshape(9, 5000).remainder(977).to(dtype) / 100
    # Forbidden tokens are -inf: a piece of nothing else, all but one, all.
    logits[0, 2048:4096] = -INF
    logits[1, :] = -INF
    logits[1, 4999] = -3.0
    logits[2, :] = -INF
    logits[3, 4500] = INF
    logits[4, 4500], logits[4, 3] = NAN, INF
    logits[5, [3000, 4500]], logits[5, 2] = NAN, 50.0
    logits[6, :] = NAN
    logits[7, 2048:4096] = NAN
    compare(logits)
    tokens, scores = told(likeliest(logits, impl="triton"))
    assert tokens[1:8] == [4999, 0, 4500, 4500, 3000, 0, 2048]
    assert scores.isnan().tolist() == [False, False, True, True, True, True, True, True, False]
    assert scores[1] == 0.0


@kernels
def test_a_row_knows_nothing_of_the_others(device: str) -> None:
    logits = torch.randn(9, 3000, generator=torch.Generator().manual_seed(4)).to(device, ROUNDED)
    every = likeliest(logits, impl="triton")
    logits[4] = NAN
    found = likeliest(logits, impl="triton")
    kept = [row for row in range(9) if row != 4]
    assert torch.equal(found[kept], every[kept])
    for row in kept:
        assert torch.equal(likeliest(logits[row : row + 1], impl="triton"), every[row : row + 1])
    assert likeliest(logits[:0], impl="triton").shape == (0, 2)


def test_the_reference_is_what_torch_says() -> None:
    logits = torch.tensor([[0.0, 3.0, 3.0, 1.0], [5.0, -INF, 0.0, 2.0]])
    tokens, scores = told(likeliest(logits, impl="reference"))
    assert tokens == [1, 0]
    expected = logits.log_softmax(-1).gather(1, torch.tensor(tokens)[:, None]).flatten()
    torch.testing.assert_close(scores, expected)
    rounded = logits.bfloat16()
    assert torch.equal(likeliest(rounded, impl="reference"), likeliest(logits, impl="reference"))


def test_misfits_are_refused() -> None:
    for wrong in (torch.zeros(5), torch.zeros(3, 0), torch.zeros(5, 3).t()):
        with pytest.raises(ValueError, match="vocabulary"):
            likeliest(wrong, impl="reference")


@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter's process")
def test_kernels_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not gpu", "-p", "no:cacheprovider"]
    command += ["-k", "not interpreter and not refused and not torch", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "18 passed" in done.stdout
