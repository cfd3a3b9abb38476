"""`fineprint bench kernels`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.reporting import FAILURE, JsonOption, ModelOption, note, reporting
from eval.benchmarks.options import DeviceOption, OutOption, RoundsOption, SeedOption, give_out


def kernels(
    op: Annotated[
        list[str] | None, typer.Option(help="Only this op; may be repeated.", show_default=False)
    ] = None,
    rounds: RoundsOption = 5,
    seed: SeedOption = 0,
    model: ModelOption = None,
    device: DeviceOption = None,
    out: OutOption = None,
    tune: Annotated[
        bool,
        typer.Option("--tune", help="Try constants instead, and write this card's table."),
    ] = False,
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables", help="Folder of tuning tables [the cache folder].", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Each op against its reference and torch's kernels, as a share of this machine's ceilings."""
    with reporting(as_json):
        import torch

        from app.settings import load_settings
        from backend.ops.tuning import FOLDER_NAME, use_tables
        from eval.benchmarks.kernels.case import SHAPES
        from eval.benchmarks.kernels.comparison import measure
        from eval.benchmarks.kernels.model_shapes import shape_of
        from eval.benchmarks.kernels.registry import find_ops
        from eval.benchmarks.kernels.tables import kernel_tables
        from eval.benchmarks.record import make_record
        from eval.benchmarks.tables import render

        settings = load_settings(model=model, device=device)
        name = settings.device
        if name == "auto":
            name = "cuda" if torch.cuda.is_available() else "cpu"
        place = torch.device(name)
        folder = tables or settings.cache_dir / FOLDER_NAME
        use_tables(folder)
        if tune:
            from eval.benchmarks.kernels.tuning.command import tune_card

            tune_card(place, tuple(op or ()), folder, seed, as_json=as_json, out=out)
            return
        ops = find_ops(tuple(op or ()))
        shapes = SHAPES[place.type] if model is None else (shape_of(settings),)
        measured, results = measure(ops, place, shapes, rounds=rounds, seed=seed, on_step=note)
        record = make_record(
            "kernels",
            device=name,
            config={
                "ops": list(ops),
                "shapes": [shape.label for shape in shapes],
                "rounds": rounds,
                "seed": seed,
                "threads": torch.get_num_threads(),
            },
            rounds=measured,
            results=results,
        )
    give_out(record, render(*kernel_tables(results)), as_json=as_json, out=out)
    if wrong := results["wrong"]:
        note(f"fineprint: kernels that disagree with their reference: {wrong}")
        raise typer.Exit(FAILURE)
