"""Who holds a lock file: by asking for the lock without waiting, and on Linux by the kernel's own
list. Leaves file and lock as they are."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import psutil

LOCKS = Path("/proc/locks")


def holder(path: Path) -> str | None:
    """Words for the process that holds the lock (`flock`) on `path`; None when nobody does.
    Raises OSError when the file can't be opened."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        try:
            # Shared is enough to meet an exclusive holder, and two who look don't meet each other.
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _told(os.fstat(handle).st_ino)
        return None
    finally:
        os.close(handle)


def _told(inode: int) -> str:
    for pid in _pids(inode):
        try:
            process = psutil.Process(pid)
            words = " ".join(Path(word).name for word in process.cmdline()[:4])
        except psutil.Error:
            return f"process {pid}"
        return f"process {pid} ({words})"
    return "another process"


def _pids(inode: int) -> list[int]:
    """From lines such as `1: FLOCK  ADVISORY  WRITE 4242 08:01:131073 0 EOF`."""
    try:
        lines = LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        words = line.split()
        if len(words) >= 6 and words[1] == "FLOCK" and words[5].endswith(f":{inode}"):
            found.append(int(words[4]))
    return found
