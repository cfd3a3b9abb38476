"""PTX of `warp_words`: words of memory into pairs of numbers of 16 bit, keys turned on the way.

Each text takes two words at a time of its first operands, which a thread has side by side.
"""

from __future__ import annotations

from triton.experimental.gluon import language as gl


def _unpacked(coding: str, word: str, low: str, high: str) -> list[str]:
    """Four codes into two pairs of float16; `word` may be spoiled."""
    if coding == "fp8":
        return [
            f"mov.b32 {{l, h}}, {word};",
            f"cvt.rn.f16x2.e4m3x2 {low}, l;",
            f"cvt.rn.f16x2.e4m3x2 {high}, h;",
        ]
    # A byte counted from -128 on, behind the exponent of 1024: 1024 + 128 too much.
    return [
        f"xor.b32 {word}, {word}, 0x80808080;",
        f"prmt.b32 {low}, {word}, 0x64646464, 0x4140;",
        f"prmt.b32 {high}, {word}, 0x64646464, 0x4342;",
        f"sub.rn.f16x2 {low}, {low}, n;",
        f"sub.rn.f16x2 {high}, {high}, n;",
    ]


def _block(registers: str, lines: list[str]) -> str:
    return "{\n" + "\n".join([registers, *lines]) + "\n}"


def _constraints(outputs: int, inputs: int) -> str:
    return ",".join(["=&r"] * outputs + ["r"] * inputs)


def _turned_codes(coding: str) -> str:
    # Results $0-$3, $4-$7: pairs of the two halves; $8, $9 and $10, $11: words of the halves;
    # $12 on: cosines of the first pair of each word, of the second, sines likewise.
    lines = ["mov.b32 n, 0x64806480;"] if coding == "int8" else []
    for word in range(2):
        lines += [f"mov.b32 w, ${8 + word};", *_unpacked(coding, "w", "a0", "a1")]
        lines += [f"mov.b32 w, ${10 + word};", *_unpacked(coding, "w", "b0", "b1")]
        for pair in range(2):
            cos, sin = 12 + 2 * pair + word, 16 + 2 * pair + word
            lines += [
                f"mul.rn.f16x2 t, b{pair}, ${sin};",
                "neg.f16x2 t, t;",
                f"fma.rn.f16x2 ${2 * word + pair}, a{pair}, ${cos}, t;",
                f"mul.rn.f16x2 t, a{pair}, ${sin};",
                f"fma.rn.f16x2 ${4 + 2 * word + pair}, b{pair}, ${cos}, t;",
            ]
    return _block(".reg .b16 l, h;\n.reg .b32 w, a0, a1, b0, b1, t, n;", lines)


def _turned_numbers(kind: str) -> str:
    # Results $0, $1 and $2, $3; words $4, $5 and $6, $7; cosines of the first number of each word
    # from $8 on, of the second, sines likewise, in float32.
    lines = []
    for word in range(2):
        for half, source in (("a", 4 + word), ("b", 6 + word)):
            if kind == "bf16":
                lines += [
                    f"shl.b32 {half}0, ${source}, 16;",
                    f"and.b32 {half}1, ${source}, 0xffff0000;",
                ]
            else:
                lines += [
                    f"mov.b32 {{l, h}}, ${source};",
                    f"cvt.f32.f16 {half}0, l;",
                    f"cvt.f32.f16 {half}1, h;",
                ]
        for one in range(2):
            cos, sin = 8 + 2 * one + word, 12 + 2 * one + word
            lines += [
                f"mul.rn.f32 t, b{one}, ${sin};",
                "neg.f32 t, t;",
                f"fma.rn.f32 x{one}, a{one}, ${cos}, t;",
                f"mul.rn.f32 t, a{one}, ${sin};",
                f"fma.rn.f32 y{one}, b{one}, ${cos}, t;",
            ]
        lines += [
            f"cvt.rn.{kind}x2.f32 ${word}, x1, x0;",
            f"cvt.rn.{kind}x2.f32 ${2 + word}, y1, y0;",
        ]
    return _block(".reg .b16 l, h;\n.reg .b32 a0, a1, b0, b1, x0, x1, y0, y1, t;", lines)


def _paired_codes(coding: str) -> str:
    # Results $0-$7: a channel's pair of two tokens; words $8, $9 of one token, $10, $11 of another.
    lines = ["mov.b32 n, 0x64806480;"] if coding == "int8" else []
    for word in range(2):
        for half, bytes_ in enumerate(("0x5140", "0x7362")):
            place = 4 * word + 2 * half
            lines.append(f"prmt.b32 w, ${8 + word}, ${10 + word}, {bytes_};")
            lines += _unpacked(coding, "w", f"${place}", f"${place + 1}")
    return _block(".reg .b16 l, h;\n.reg .b32 w, n;", lines)


def _paired_numbers() -> str:
    lines = []
    for word in range(2):
        for half, halves in enumerate(("0x5410", "0x7632")):
            lines.append(f"prmt.b32 ${2 * word + half}, ${4 + word}, ${6 + word}, {halves};")
    return _block("", lines)


TURN_FP8 = gl.constexpr(_turned_codes("fp8"))
TURN_INT8 = gl.constexpr(_turned_codes("int8"))
TURN_BF16 = gl.constexpr(_turned_numbers("bf16"))
TURN_FP16 = gl.constexpr(_turned_numbers("f16"))
PAIR_FP8 = gl.constexpr(_paired_codes("fp8"))
PAIR_INT8 = gl.constexpr(_paired_codes("int8"))
PAIR_NUMBERS = gl.constexpr(_paired_numbers())
TURN_CODES_REGISTERS = gl.constexpr(_constraints(8, 12))
TURN_NUMBERS_REGISTERS = gl.constexpr(_constraints(4, 12))
PAIR_CODES_REGISTERS = gl.constexpr(_constraints(8, 4))
PAIR_NUMBERS_REGISTERS = gl.constexpr(_constraints(4, 4))
