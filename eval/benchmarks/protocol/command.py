"""`fineprint bench protocol`."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.reporting import FAILURE, JsonOption, ModelOption, note, reporting
from eval.benchmarks.options import (
    BlockOption,
    BudgetOption,
    DeviceOption,
    LinearOption,
    OutOption,
    PrecisionOption,
    SeedOption,
    ShapeOption,
    give_out,
)


def protocol(
    preset: Annotated[
        str, typer.Option(help="protocol (50 requests, 4K-512K) or cpu (small, minutes).")
    ] = "protocol",
    arms: Annotated[
        str | None,
        typer.Option(
            help="full,dense:mixed: those arms, the second in one cell (default: all).",
            show_default=False,
        ),
    ] = None,
    cells: Annotated[str, typer.Option(help="cold, mixed or both.")] = "cold,mixed",
    requests: Annotated[int | None, typer.Option(min=1, help="Requests of a load.")] = None,
    lengths: Annotated[
        str | None, typer.Option(help="Tokens: 1K,2K,16K, or 4K-512K for each doubling.")
    ] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Requests at a time.")] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds; results are medians (default: 5, cpu: 1).")
    ] = None,
    other_rounds: Annotated[
        int | None,
        typer.Option(min=1, help="Rounds of the arms other than full (default: as many)."),
    ] = None,
    limit: Annotated[
        float, typer.Option(min=0.1, help="Seconds after which a cell is cut, but for full's.")
    ] = 900,
    full_limit: Annotated[
        float, typer.Option(min=0.1, help="Seconds after which a cell of full is cut.")
    ] = 900,
    answer_tokens: Annotated[int, typer.Option(min=1, help="Of each answer.")] = 32,
    evidence: Annotated[
        int, typer.Option(min=1, help="Tokens that a question attends to, in four places.")
    ] = 1536,
    seed: SeedOption = 0,
    model: ModelOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
    block_tokens: BlockOption = None,
    kv_budget: BudgetOption = None,
    kv_format: Annotated[
        str | None,
        typer.Option(help="Format of the KV pages (default: the settings').", show_default=False),
    ] = None,
    shape: ShapeOption = None,
    linear_format: LinearOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """The serving protocol inside one engine, and with each of the engine's switches off."""
    with reporting(as_json):
        from eval.benchmarks.engine_settings import EngineChoice, chosen_config
        from eval.benchmarks.mixed.choices import choose_cells, choose_shape
        from eval.benchmarks.protocol.arms import choose_arms
        from eval.benchmarks.protocol.measure import Measured, ProtocolPlan, measure
        from eval.benchmarks.protocol.record import protocol_record
        from eval.benchmarks.protocol.tables import show_protocol
        from eval.benchmarks.record import write_record

        load = choose_shape(
            preset,
            requests=requests,
            lengths=lengths,
            concurrency=concurrency,
            rounds=rounds or (1 if preset == "cpu" else None),
            output_tokens=answer_tokens,
            seed=seed,
        )
        plan = ProtocolPlan(
            shape=load,
            arms=choose_arms(arms),
            cells=choose_cells(cells),
            evidence=evidence,
            limit_s=limit,
            full_limit_s=full_limit,
            other_rounds=min(other_rounds or load.rounds, load.rounds),
        )
        choice = EngineChoice(
            model, device, precision, block_tokens, kv_budget, shape, linear_format, kv_format
        )
        # What is wrong with the settings is said before anything is measured.
        used = chosen_config(choice).device

        def keep(found: Measured) -> None:
            if out is not None:
                write_record(out, protocol_record(plan, found, used))

        measured = measure(choice, plan, note, keep)
        record = protocol_record(plan, measured, used)
        tables = show_protocol(record)
    give_out(record, tables, as_json=as_json, out=out)
    if measured.failures:
        raise typer.Exit(FAILURE)
