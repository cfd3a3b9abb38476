"""Whether everything that answers depend on is there: database, disk, engine, the threads that
answer and take in, a GPU that is cool enough; and whether the server is warm. Knows no HTTP."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from app.answers import AnswerRuns
from app.errors import AppError
from app.services import Services

FREE_BYTES_NEEDED = 200_000_000
"""Room for one upload of the default limit."""


@dataclass(frozen=True, slots=True)
class Check:
    """One dependency. `detail` says what is wrong and what to do, or is "ok". `code` names the
    fault for programs, where there are several."""

    name: str
    ok: bool
    detail: str = "ok"
    code: str = ""


def readiness(services: Services, runs: AnswerRuns) -> tuple[Check, ...]:
    """Every dependency, looked at now."""
    return (
        _phase(services),
        _database(services),
        _storage(services),
        _engine(services),
        _answers(runs),
        _ingestion(services),
        _gpu(services),
    )


def _phase(services: Services) -> Check:
    phase = services.gate.phase
    if phase == "warming up":
        return Check("phase", False, "warming up: the model has not answered anything yet")
    if phase == "stopping":
        return Check("phase", False, "stopping: no new questions; running answers may end")
    return Check("phase", True, phase)


def _answers(runs: AnswerRuns) -> Check:
    return Check("answers", not runs.problem, runs.problem or "ok")


def _ingestion(services: Services) -> Check:
    problem = services.library.runner.problem
    return Check("ingestion", not problem, problem or "ok")


def _gpu(services: Services) -> Check:
    heat = services.gate.heat
    return Check("gpu", not heat.state.hot, heat.describe())


def _database(services: Services) -> Check:
    try:
        services.library.open_jobs()
    except AppError as error:
        return Check("database", False, error.message)
    return Check("database", True)


def _storage(services: Services) -> Check:
    folder = services.settings.data_dir
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Check("storage", False, f"{folder}: {error.strerror}")
    if free < FREE_BYTES_NEEDED:
        return Check("storage", False, f"only {free // 1_000_000} MB are free at {folder}")
    return Check("storage", True)


def _engine(services: Services) -> Check:
    engine, limit = services.engine, services.settings.engine_stall_s
    if not engine.alive and not engine.attends_pages:
        advice = "Start one, or change FINEPRINT_REMOTE_URLS; the server goes on when one answers."
        return Check(
            "engine",
            False,
            f"No model server answers: {engine.problem}. {advice}",
            "model_servers_down",
        )
    if not engine.alive:
        return Check("engine", False, engine.problem, "engine_dead")
    seconds = engine.step_seconds
    if seconds > limit:
        return Check(
            "engine",
            False,
            f"The engine has been at one step for {seconds:.0f} s, longer than {limit:g} s "
            "(FINEPRINT_ENGINE_STALL_S). Look at the machine: a slow disk, memory that is swapped, "
            "a GPU that does not answer (fineprint doctor). Questions go on if the step ends; if "
            "it does not, restart the server.",
            "engine_stalled",
        )
    return Check("engine", True)
