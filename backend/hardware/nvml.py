"""The GPUs through NVIDIA's management library (NVML), by UUID: its own numbering is not that of
CUDA. Reads only, sets nothing. Knows no limits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import pynvml

from backend.errors import SensorError
from backend.hardware.types import GPUState, Temperature

_T = TypeVar("_T")


class Nvml:
    """An open NVML. Safe to call from any thread."""

    def __init__(self, gpus: Sequence[str] | None = None) -> None:
        """`gpus` are UUIDs, with or without the prefix `GPU-` or `MIG-`; None is every GPU of the
        machine. Raises SensorError where there is no NVML or not such a GPU."""
        self._lock = threading.Lock()
        self._open = True
        with _told("NVML can't be opened"):
            pynvml.nvmlInit()
        try:
            self._handles = [_named(uuid) for uuid in gpus] if gpus is not None else _all()
        except SensorError:
            self.close()
            raise

    @property
    def driver(self) -> str:
        """Version of the driver. Raises SensorError."""
        with _told("the driver's version is unknown"):
            return _text(pynvml.nvmlSystemGetDriverVersion())

    def temperatures(self) -> tuple[Temperature, ...]:
        """Of each GPU, now. Raises SensorError when a GPU answers no more."""
        with self._lock:
            return tuple(_temperature(handle) for handle in self._handles)

    def states(self) -> tuple[GPUState, ...]:
        """Memory and links of each GPU, now. Raises SensorError."""
        with self._lock:
            return tuple(_state(handle) for handle in self._handles)

    def close(self) -> None:
        """Ask no more afterwards; closing twice is harmless."""
        with self._lock:
            if self._open:
                self._open = False
                with _told("NVML can't be closed"):
                    pynvml.nvmlShutdown()


def _all() -> list[Any]:
    with _told("the GPUs can't be counted"):
        count = pynvml.nvmlDeviceGetCount()
        return [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]


def _named(uuid: str) -> Any:
    """The handle of a GPU; for a part of one (MIG) that of the whole, which has the sensors."""
    prefixed = uuid.startswith(("GPU-", "MIG-"))
    names = [uuid] if prefixed else [f"GPU-{uuid}", f"MIG-{uuid}"]
    for name in names:
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID(name)
        except pynvml.NVMLError_NotFound:
            continue
        except pynvml.NVMLError as error:
            raise SensorError(f"GPU {name} can't be asked: {error}") from error
        if name.startswith("MIG-"):
            with _told(f"the GPU of {name} is unknown"):
                return pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
        return handle
    raise SensorError(f"NVML knows no GPU {uuid}")


def _temperature(handle: Any) -> Temperature:
    with _told("a GPU answers no more"):
        return Temperature(
            gpu=_text(pynvml.nvmlDeviceGetUUID(handle)),
            name=_text(pynvml.nvmlDeviceGetName(handle)),
            core_c=_if_there(
                lambda: int(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))
            ),
            memory_c=_if_there(lambda: _memory_temperature(handle)),
        )


def _memory_temperature(handle: Any) -> int | None:
    (field,) = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_MEMORY_TEMP])
    # Cards without the sensor say so in the field, some with a value of 0.
    if field.nvmlReturn != pynvml.NVML_SUCCESS or not field.value.uiVal:
        return None
    return int(field.value.uiVal)


def _state(handle: Any) -> GPUState:
    with _told("a GPU answers no more"):
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        return GPUState(
            uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
            name=_text(pynvml.nvmlDeviceGetName(handle)),
            free_bytes=int(memory.free),
            total_bytes=int(memory.total),
            links=sum(_link_is_up(handle, link) for link in range(pynvml.NVML_NVLINK_MAX_LINKS)),
        )


def _link_is_up(handle: Any, link: int) -> bool:
    try:
        return bool(pynvml.nvmlDeviceGetNvLinkState(handle, link))
    # A card has fewer links than the library knows, or none.
    except (pynvml.NVMLError_InvalidArgument, pynvml.NVMLError_NotSupported):
        return False


def _if_there(read: Callable[[], _T]) -> _T | None:
    try:
        return read()
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound):
        return None


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Translates NVML's errors, in one place."""
    try:
        yield
    except pynvml.NVMLError as error:
        raise SensorError(f"{what}: {error}") from error


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
