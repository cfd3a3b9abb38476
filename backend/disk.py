"""Opens the disk tier that an engine's settings ask for. Knows no blocks."""

from __future__ import annotations

import logging
from collections.abc import Callable

from backend.engine_config import EngineConfig
from backend.errors import BackendError
from kvstore.errors import KVFolderBusy
from kvstore.tiers.disk import DiskTier
from kvstore.tiers.folder import clear_folder
from kvstore.tiers.types import Stamp

_log = logging.getLogger(__name__)


def open_disk(config: EngineConfig, stamp: Stamp, wake: Callable[[], None]) -> DiskTier | None:
    """The disk tier, or None when there is to be none or another process has the folder: this
    engine then keeps KV in memory alone.

    Raises BackendError for a folder that can't be used.
    """
    folder = config.disk_folder
    if folder is None:
        return None
    try:
        if not config.disk_budget:
            clear_folder(folder)
            return None
        return DiskTier(folder, stamp, config.disk_budget, wake)
    except KVFolderBusy as error:
        _log.info("%s; this one keeps them in memory alone", error)
        return None
    except OSError as error:
        raise BackendError(
            f"KV pages can't be kept in {folder}: {error}. Make it writable, or keep none on disk "
            "(FINEPRINT_KV_DISK_MB=0)"
        ) from error
