"""`fineprint bench`: first-token times, mixed load, serving, interference, decoding, kernels."""

from __future__ import annotations

import typer

from eval.benchmarks.decode_command import decode
from eval.benchmarks.interference_command import interference
from eval.benchmarks.kernels.command import kernels
from eval.benchmarks.mixed.command import mixed
from eval.benchmarks.protocol.command import protocol
from eval.benchmarks.ttft_command import ttft

commands = typer.Typer(help="Measure speed, each figure with its conditions.", no_args_is_help=True)
commands.command("ttft")(ttft)
commands.command("decode")(decode)
commands.command("mixed")(mixed)
commands.command("protocol")(protocol)
commands.command("interference")(interference)
commands.command("kernels")(kernels)
