# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Words of keys and values (four codes, or two numbers of 16 bit) into operands of `mma.m16n8k16`.

A thread reads 16 bytes at a time, and what it reads it keeps: which place of the product's inner
dimension stands for which channel, and which row for which channel of a value, is chosen so that no
number changes its thread. The results of one piece of assembly are pairs in one register; where
they are of two tokens, reshapes without instructions give them their places.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from backend.ops.page_attention.warp_assembly import (
    PAIR_CODES_REGISTERS,
    PAIR_FP8,
    PAIR_INT8,
    PAIR_NUMBERS,
    PAIR_NUMBERS_REGISTERS,
    TURN_BF16,
    TURN_CODES_REGISTERS,
    TURN_FP8,
    TURN_FP16,
    TURN_INT8,
    TURN_NUMBERS_REGISTERS,
)


@gluon.constexpr_function
def vector_of(words, lanes):
    """Words that a thread reads at a time of a row that `lanes` threads share."""
    return min(4, words // lanes)


@gluon.constexpr_function
def key_layout(words):
    """Half a row of keys, [64 tokens, words]: rows as `mma` has them, a row by four threads."""
    vector = vector_of(words, 4)
    reads = [[0, bit] for bit in (1, 2) if bit < vector]
    rounds = [[0, bit] for bit in (16, 32, 64) if 4 * vector <= bit < words]
    return gl.DistributedLinearLayout(
        [*reads, [8, 0], *rounds],
        [[0, vector], [0, 2 * vector], [1, 0], [2, 0], [4, 0]],
        [[16, 0], [32, 0]],
        [],
        [64, words],
    )


@gluon.constexpr_function
def value_layout(words):
    """Rows of values, [warps, 8 pairs of tokens, words]: a row by eight threads."""
    vector = vector_of(words, 8)
    reads = [[0, 0, bit] for bit in (1, 2) if bit < vector]
    rounds = [[0, 0, bit] for bit in (32, 64, 128) if 8 * vector <= bit < words]
    return gl.DistributedLinearLayout(
        [*reads, [0, 4, 0], *rounds],
        [[0, 1, 0], [0, 2, 0], [0, 0, vector], [0, 0, 2 * vector], [0, 0, 4 * vector]],
        [[1, 0, 0], [2, 0, 0]],
        [],
        [4, 8, words],
    )


@gluon.jit
def float16_pairs(low, high):
    """Numbers in float32 as words of two in float16."""
    return gl.inline_asm_elementwise(
        "cvt.rn.f16x2.f32 $0, $2, $1;", "=r,f,f", [low, high], gl.int32, True, 1
    )


@gluon.constexpr_function
def _table_layout(words, each):
    """As `key_layout`, with `each` numbers for a word."""
    vector = vector_of(words, 4) * each
    channels = words * each
    places = [bit for bit in (1, 2, 4, 8, 16, 32, 64) if bit < channels]
    return gl.DistributedLinearLayout(
        [[0, bit] for bit in places if bit < vector]
        + [[8, 0]]
        + [[0, bit] for bit in places if bit >= 4 * vector],
        [[0, vector], [0, 2 * vector], [1, 0], [2, 0], [4, 0]],
        [[16, 0], [32, 0]],
        [],
        [64, channels],
    )


@gluon.jit
def table_words(
    cos, sin, cos_row, sin_row, ROW: gl.constexpr, HALF: gl.constexpr, CODING: gl.constexpr
):
    """Cosines and sines of a page's 64 places for `turned_keys`, both for two numbers, or pairs of
    them, of a word."""
    WORDS: gl.constexpr = ROW // 2
    LAYOUT: gl.constexpr = _table_layout(WORDS, HALF // WORDS)
    slot = gl.arange(0, 64, layout=gl.SliceLayout(1, LAYOUT))
    channel = gl.arange(0, HALF, layout=gl.SliceLayout(0, LAYOUT))
    cosines = gl.load(cos + (slot[:, None] * cos_row + channel[None, :]))
    sines = gl.load(sin + (slot[:, None] * sin_row + (HALF + channel)[None, :]))
    cos_0, cos_1 = _of_words(cosines, WORDS, CODING)
    sin_0, sin_1 = _of_words(sines, WORDS, CODING)
    return cos_0, cos_1, sin_0, sin_1


@gluon.jit
def _of_words(table, WORDS: gl.constexpr, CODING: gl.constexpr):
    if CODING == "plain":
        low, high = gl.split(gl.reshape(table, [64, WORDS, 2]))
        first = low.to(gl.int32, bitcast=True)
        second = high.to(gl.int32, bitcast=True)
    else:
        low, high = gl.split(gl.reshape(table, [64, WORDS, 2, 2]))
        first, second = gl.split(float16_pairs(low, high))
    KEYS: gl.constexpr = key_layout(WORDS)
    return gl.convert_layout(first, KEYS, True), gl.convert_layout(second, KEYS, True)


@gluon.jit
def turned_keys(a, b, cos_0, cos_1, sin_0, sin_1, CODING: gl.constexpr, KIND: gl.constexpr):
    """Both halves of keys [64, words] turned by their place, [64, channels] of which the inner
    dimension is that of `inner_places`."""
    inputs = [a, b, cos_0, cos_1, sin_0, sin_1]
    if CODING == "plain":
        a0, a1, b0, b1 = gl.inline_asm_elementwise(
            TURN_FP16 if gl.float16 == KIND else TURN_BF16,
            TURN_NUMBERS_REGISTERS,
            inputs,
            (KIND.value, KIND.value, KIND.value, KIND.value),
            True,
            2,
        )
        first = gl.join(a0, a1)
        second = gl.join(b0, b1)
    else:
        a0, a1, a2, a3, b0, b1, b2, b3 = gl.inline_asm_elementwise(
            TURN_FP8 if CODING == "fp8" else TURN_INT8,
            TURN_CODES_REGISTERS,
            inputs,
            (
                KIND.value,
                KIND.value,
                KIND.value,
                KIND.value,
                KIND.value,
                KIND.value,
                KIND.value,
                KIND.value,
            ),
            True,
            2,
        )
        first = gl.join(gl.join(a0, a2), gl.join(a1, a3))
        second = gl.join(gl.join(b0, b2), gl.join(b1, b3))
    first = _inner(first)
    second = _inner(second)
    both = gl.permute(gl.join(first, second), [0, 2, 1])
    return gl.reshape(both, [64, 2 * first.shape[1]])


@gluon.jit
def _inner(pairs):
    # [64, words, ...] of pairs by words: the bits of a place, from the right, are which of a pair,
    # which of four threads, and the rest as in memory.
    words: gl.constexpr = pairs.shape[1]
    each: gl.constexpr = pairs.numel // (64 * words)
    J: gl.constexpr = vector_of(words, 4) // 2
    R: gl.constexpr = words // (8 * J)
    apart = gl.reshape(pairs, [64, R, 4, J, 2, each])
    return gl.reshape(gl.permute(apart, [0, 1, 3, 5, 2, 4]), [64, words * each])


@gluon.constexpr_function
def _run(channels, words):
    """Channels of a half side by side that a thread has, when it is `words` long."""
    return channels // words * vector_of(words, 4)


@gluon.constexpr_function
def query_layout(rows, width, words):
    """Queries [rows, width], as the product takes them with keys of `words` for each half."""
    run = _run(width // 2, words)
    places = [bit for bit in (1, 2, 4, 8, 16, 32, 64, 128) if bit < width]
    return gl.DistributedLinearLayout(
        [[0, bit] for bit in places if bit not in (run, 2 * run)]
        + [[bit, 0] for bit in (8, 16, 32) if bit < rows],
        [[0, run], [0, 2 * run], [1, 0], [2, 0], [4, 0]],
        [[0, 0], [0, 0]],
        [],
        [rows, width],
    )


@gluon.jit
def inner_places(asked, WORDS: gl.constexpr):
    """Queries in `query_layout` as [channels, rows], channels as `turned_keys` has them."""
    rows: gl.constexpr = asked.shape[0]
    width: gl.constexpr = asked.shape[1]
    RUN: gl.constexpr = _run(width // 2, WORDS)
    apart = gl.reshape(asked, [rows, width // (4 * RUN), 4, RUN // 2, 2])
    return gl.reshape(gl.permute(apart, [1, 3, 2, 4, 0]), [width, rows])


@gluon.jit
def value_pairs(even, odd, CODING: gl.constexpr, KIND: gl.constexpr):
    """Values of even and of odd tokens, [warps, 8, words] each, as [warps, channels, 16 tokens];
    `channel_rows` puts the channels in order."""
    words: gl.constexpr = even.shape[2]
    J: gl.constexpr = vector_of(words, 8) // 2
    R: gl.constexpr = words // (16 * J)
    if CODING == "plain":
        v0, v1, v2, v3 = gl.inline_asm_elementwise(
            PAIR_NUMBERS,
            PAIR_NUMBERS_REGISTERS,
            [even, odd],
            (KIND.value, KIND.value, KIND.value, KIND.value),
            True,
            2,
        )
        pairs = gl.join(gl.join(v0, v2), gl.join(v1, v3))
    else:
        v0, v1, v2, v3, v4, v5, v6, v7 = gl.inline_asm_elementwise(
            PAIR_FP8 if CODING == "fp8" else PAIR_INT8,
            PAIR_CODES_REGISTERS,
            [even, odd],
            (
                KIND.value,
                KIND.value,
                KIND.value,
                KIND.value,
                KIND.value,
                KIND.value,
                KIND.value,
                KIND.value,
            ),
            True,
            2,
        )
        left = gl.join(gl.join(v0, v4), gl.join(v2, v6))
        right = gl.join(gl.join(v1, v5), gl.join(v3, v7))
        pairs = gl.join(left, right)
    each: gl.constexpr = pairs.numel // (32 * words)
    apart = gl.reshape(pairs, [4, 8, R, 8, J, 2, each])
    return gl.reshape(gl.permute(apart, [0, 6, 2, 4, 3, 1, 5]), [4, each * R * J * 8, 16])


@gluon.jit
def channel_rows(read, WORDS: gl.constexpr):
    """[channels, rows] of a product with `value_pairs`, channels in their order."""
    channels: gl.constexpr = read.shape[0]
    rows: gl.constexpr = read.shape[1]
    J: gl.constexpr = vector_of(WORDS, 8) // 2
    R: gl.constexpr = WORDS // (16 * J)
    each: gl.constexpr = channels // (R * J * 8)
    apart = gl.reshape(read, [each, R, J, 8, rows])
    return gl.reshape(gl.permute(apart, [1, 3, 2, 0, 4]), [channels, rows])


@gluon.jit
def inverse(x):
    """1 / x, near enough for a share of float16."""
    return gl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], gl.float32, True, 1)


@gluon.jit
def transposed_weights(weights):
    """[warps, 16 tokens, rows] in 16 bit as the result of one product, for the next one's operand:
    each block of eight by eight changes lanes at once."""
    rows: gl.constexpr = weights.shape[2]
    moved = gl.inline_asm_elementwise(
        "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r", [weights], weights.dtype, True, 2
    )
    blocks = gl.reshape(moved, [4, 2, 8, rows // 8, 8])
    return gl.reshape(gl.permute(blocks, [0, 1, 4, 3, 2]), [4, 16, rows])
