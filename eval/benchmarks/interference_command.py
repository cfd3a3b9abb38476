"""`fineprint bench interference`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from typing import Annotated

import typer

from app.cli.reporting import JsonOption, ModelOption, note, reporting
from eval.benchmarks.options import (
    BlockOption,
    BudgetOption,
    DeviceOption,
    OutOption,
    PrecisionOption,
    RoundsOption,
    SeedOption,
    TextOption,
    give_out,
)


def interference(
    long: Annotated[str, typer.Option(help="Tokens of the document that is read.")] = "64K",
    short: Annotated[str, typer.Option(help="Tokens of the documents asked about.")] = "2K",
    rate: Annotated[float, typer.Option(min=0.001, help="Questions a second.")] = 0.25,
    questions: Annotated[int, typer.Option(min=2, help="Of the load without reading.")] = 20,
    text: TextOption = None,
    rounds: RoundsOption = 3,
    seed: SeedOption = 0,
    model: ModelOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
    block_tokens: BlockOption = None,
    kv_budget: BudgetOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Short questions while a long document is read: alone, in turns, first come first served."""
    with reporting(as_json):
        from backend.engine import Engine
        from eval.benchmarks.documents import load_pieces, sample_files
        from eval.benchmarks.engine_documents import stretch_for
        from eval.benchmarks.engine_settings import (
            EngineChoice,
            chosen_config,
            chosen_parts,
            engine_fields,
        )
        from eval.benchmarks.interference import Bench, Fields, InterferencePlan, summary
        from eval.benchmarks.lengths import parse_length
        from eval.benchmarks.record import make_record
        from eval.benchmarks.tables import make_table, render, show

        plan = InterferencePlan(
            short=parse_length(short),
            long=parse_length(long),
            rate=rate,
            questions=questions,
            rounds=rounds,
            seed=seed,
        )
        choice = EngineChoice(model, device, precision, block_tokens, kv_budget)
        config = chosen_config(choice)
        files = tuple(text) if text else sample_files()
        measured: list[dict[str, Fields]] = [{} for _ in range(rounds)]
        fields: dict[str, object] = {}
        for first_come in (False, True):
            set_up = replace(config, first_come=first_come)
            with closing(Engine.open(set_up, partial(chosen_parts, choice))) as engine:
                pieces = load_pieces(files, stretch=stretch_for(engine.block_tokens))
                bench = Bench(engine, plan, pieces, plan.seed + 1000 * (1 + first_come))
                for number, one in enumerate(measured):
                    note(f"round {number + 1}: {'first come' if first_come else 'in turns'}")
                    if first_come:
                        one["first_come"] = bench.together().fields()
                        continue
                    one["alone"] = bench.alone().fields()
                    one["read_alone"] = bench.read_alone().fields()
                    one["beside"] = bench.together().fields()
                fields = engine_fields(engine)
                blocks = len(engine.split_blocks(plan.long))
        results = summary(measured, blocks)
        record = make_record(
            "interference",
            device=config.device,
            config={**asdict(plan), "texts": [path.name for path in files], "engine": fields},
            rounds=measured,
            results=results,
        )
        table = make_table(
            f"medians of {rounds} rounds",
            ["figure", "value"],
            [[name, show(value, 2)] for name, value in results.items()],
        )
    give_out(record, render(table), as_json=as_json, out=out)
