"""Finds the case files: every module in `eval/benchmarks/kernels/cases/` is one op and has
`cases(setup) -> Iterator[Case]`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from typing import cast

from app.errors import BadParameter
from eval.benchmarks.kernels import cases as package
from eval.benchmarks.kernels.case import Case, Setup

MakeCases = Callable[[Setup], Iterator[Case]]


def op_names() -> tuple[str, ...]:
    """The ops that have cases, by name."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(package.__path__)))


def find_ops(names: tuple[str, ...] = ()) -> Mapping[str, MakeCases]:
    """The named ops, or all. Raises BadParameter for a name without cases."""
    known = op_names()
    for name in names:
        if name not in known:
            raise BadParameter(f"No cases for an op {name!r}; there are {', '.join(known)}")
    found: dict[str, MakeCases] = {}
    for name in names or known:
        module = importlib.import_module(f"{package.__name__}.{name}")
        found[name] = cast(MakeCases, module.cases)
    return found
