"""`fineprint bench ttft`."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

import typer

from app.cli.reporting import JsonOption, ModelOption, note, reporting
from eval.benchmarks.options import (
    BlockOption,
    BudgetOption,
    DeviceOption,
    LinearOption,
    OutOption,
    PrecisionOption,
    RoundsOption,
    SeedOption,
    ShapeOption,
    TextOption,
    give_out,
)

_DENSE_MAX = {"cpu": "8K", "cuda": "128K"}
"""Dense reading grows with the square of the length: one document of 16K takes more than a minute
on two CPU cores with the default model."""


def ttft(
    lengths: Annotated[str, typer.Option(help="Document lengths in tokens.")] = "4K,8K,16K",
    text: TextOption = None,
    rounds: RoundsOption = 5,
    dense: Annotated[
        bool, typer.Option("--dense/--no-dense", help="Measure dense reading beside it.")
    ] = True,
    dense_max: Annotated[
        str | None,
        typer.Option(help="Longest dense document [cpu: 8K, cuda: 128K].", show_default=False),
    ] = None,
    evidence: Annotated[
        int, typer.Option(min=1, help="Tokens that a question attends to, in four places.")
    ] = 1536,
    seed: SeedOption = 0,
    model: ModelOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
    block_tokens: BlockOption = None,
    kv_budget: BudgetOption = None,
    shape: ShapeOption = None,
    linear_format: LinearOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """First-token times by document length: evidence first, grounded, warm; dense beside them."""
    with reporting(as_json):
        from eval.benchmarks.documents import load_pieces, sample_files
        from eval.benchmarks.engine_documents import stretch_for
        from eval.benchmarks.engine_settings import EngineChoice, engine_fields, opened
        from eval.benchmarks.first_token import CLOCK
        from eval.benchmarks.gpu_memory import memory_fields
        from eval.benchmarks.lengths import parse_length, parse_lengths
        from eval.benchmarks.record import make_record
        from eval.benchmarks.tables import render, ttft_tables
        from eval.benchmarks.ttft import TtftPlan, measure

        wanted = parse_lengths(lengths)
        longest = None if dense_max is None else parse_length(dense_max)
        files = tuple(text) if text else sample_files()
        choice = EngineChoice(
            model, device, precision, block_tokens, kv_budget, shape, linear_format
        )
        began = time.perf_counter()
        with opened(choice) as engine:
            open_s = time.perf_counter() - began
            kind = engine.settings.device.partition(":")[0]
            limit = parse_length(_DENSE_MAX[kind]) if longest is None else longest
            plan = TtftPlan(wanted, rounds, limit if dense else 0, evidence, seed=seed)
            pieces = load_pieces(files, stretch=stretch_for(engine.block_tokens))
            measured, results = measure(engine, plan, pieces, note)
            results["memory"] = memory_fields(engine)
            record = make_record(
                "ttft",
                device=engine.settings.device,
                config={
                    **asdict(plan),
                    "texts": [path.name for path in files],
                    "clock": CLOCK,
                    "engine_open_s": open_s,
                    "engine": engine_fields(engine),
                },
                rounds=measured,
                results=results,
            )
    give_out(record, render(*ttft_tables(results)), as_json=as_json, out=out)
