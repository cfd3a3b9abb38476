"""`fineprint bench decode`."""

from __future__ import annotations

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


def decode(
    contexts: Annotated[str, typer.Option(help="Context lengths in tokens.")] = "512,2K,8K",
    batch: Annotated[str, typer.Option(help="Sequences at the same time.")] = "1,2,4,8",
    tokens: Annotated[int, typer.Option(min=2, help="Tokens timed for each sequence.")] = 64,
    kv_format: Annotated[str, typer.Option("--format", help="auto, bf16, fp16 or fp32.")] = "auto",
    document: Annotated[
        str, typer.Option(help="Length of the document whose pages are evidence.")
    ] = "32K",
    source: Annotated[
        str | None,
        typer.Option(help="prompt or evidence: where contexts come from.", show_default="both"),
    ] = None,
    all_cells: Annotated[
        bool, typer.Option("--all-cells", help="Also those that take minutes a round.")
    ] = False,
    sampled: Annotated[
        bool, typer.Option("--sampled", help="Sampled decoding in every batch, not in one alone.")
    ] = False,
    text: TextOption = None,
    rounds: RoundsOption = 5,
    seed: SeedOption = 0,
    model: ModelOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
    block_tokens: BlockOption = None,
    kv_budget: BudgetOption = None,
    shape: ShapeOption = None,
    linear_format: LinearOption = None,
    guesses: Annotated[
        str | None,
        typer.Option(
            help="Also answers that quote, with so many tokens guessed: 0,3,7 (0 guesses none).",
            show_default=False,
        ),
    ] = None,
    quotes: Annotated[int, typer.Option(min=1, help="Answers that quote.")] = 20,
    steps: Annotated[
        str | None,
        typer.Option(
            help="Also steps on a GPU outside of the engine, on KV of these lengths, by batch: to "
            "set a few pages beside dense KV.",
            show_default=False,
        ),
    ] = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Time per token by context length and batch, on prompts and on evidence pages."""
    with reporting(as_json):
        from eval.benchmarks.decode import DecodePlan, measure, parse_source, require_format
        from eval.benchmarks.dense_decode import decode_steps
        from eval.benchmarks.documents import load_pieces, sample_files
        from eval.benchmarks.engine_settings import (
            EngineChoice,
            chosen_config,
            chosen_parts,
            engine_fields,
            opened,
        )
        from eval.benchmarks.gpu_memory import memory_fields
        from eval.benchmarks.lengths import parse_counts, parse_length, parse_lengths
        from eval.benchmarks.quoting import measure_quoting
        from eval.benchmarks.record import make_record
        from eval.benchmarks.tables import decode_tables, render

        plan = DecodePlan(
            contexts=parse_lengths(contexts),
            batches=parse_counts(batch),
            tokens=tokens,
            rounds=rounds,
            document_tokens=parse_length(document),
            every_cell=all_cells,
            sources=parse_source(source),
            seed=seed,
            sampled=sampled,
        )
        files = tuple(text) if text else sample_files()
        pieces = load_pieces(files)
        choice = EngineChoice(
            model, device, precision, block_tokens, kv_budget, shape, linear_format
        )
        outside: list[dict[str, object]] = []
        if steps is not None:
            note("steps outside of the engine")
            parts = chosen_parts(choice, chosen_config(choice))
            outside = decode_steps(parts, parse_lengths(steps), plan.batches)
            del parts
        quoting: list[dict[str, object]] = []
        if guesses is not None:
            numbers = [int(part) for part in guesses.split(",")]
            quoting = measure_quoting(
                choice, numbers, pieces, answers=quotes, seed=seed, on_step=note
            )
        with opened(choice) as engine:
            require_format(engine, kv_format)
            measured, results = measure(engine, plan, pieces, note)
            results["steps_outside"] = outside
            results["quoting"] = quoting
            results["memory"] = memory_fields(engine)
            record = make_record(
                "decode",
                device=engine.settings.device,
                config={
                    **asdict(plan),
                    "kv_format": kv_format,
                    "texts": [path.name for path in files],
                    "engine": engine_fields(engine),
                },
                rounds=measured,
                results=results,
            )
    give_out(record, render(*decode_tables(results)), as_json=as_json, out=out)
