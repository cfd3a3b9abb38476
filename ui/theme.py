"""How the page looks: a quiet theme on system fonts, so that nothing is fetched from elsewhere."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

STYLESHEET = Path(__file__).with_name("style.css")

_SANS = (
    "system-ui",
    "-apple-system",
    "Segoe UI",
    "Noto Sans CJK SC",
    "PingFang SC",
    "Microsoft YaHei",
    "sans-serif",
)
_MONO = ("ui-monospace", "Menlo", "Consolas", "monospace")


def make_theme() -> gr.themes.Base:
    """The theme. Its fonts are names of installed fonts, never addresses."""
    return gr.themes.Base(
        primary_hue=gr.themes.colors.teal,
        neutral_hue=gr.themes.colors.stone,
        font=_SANS,
        font_mono=_MONO,
        radius_size=gr.themes.sizes.radius_md,
    )
