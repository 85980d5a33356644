"""How long this process may believe that it leads: by its own clock, at the moment of the question."""

from __future__ import annotations

import mmap
import os
import re
import sys
import time
from typing import Optional

# A clock that goes on while the machine sleeps. Only Linux has it under this name.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> int:
    """Nanoseconds of CLOCK_BOOTTIME."""
    return time.clock_gettime_ns(_CLOCK) if _CLOCK is not None else time.monotonic_ns()


class Trust:
    """The end of trust in one term: read from the sidecar's file, or counted from its answers."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._file: Optional[memoryview] = None
        self._counted = 0
        self._over = False

    @property
    def by_file(self) -> bool:
        return self._file is not None

    def map(self, path: Optional[str], hold: str, term: int) -> None:
        """Uses the trust file if this process may: on the same boot, and with the same clock."""
        try:
            if path is not None and _CLOCK is not None and sys.byteorder == "little":
                self._file = _map(path, hold, term)
        except (OSError, ValueError):
            self._file = None  # Elsewhere, or not allowed to look: the sidecar is asked.

    def count(self, sent: int, trusted_for_ms: int) -> None:
        """Takes in an answer, counted from before its question was sent."""
        self._counted = max(self._counted, sent + trusted_for_ms * 1_000_000)

    def end(self) -> None:
        self._over = True

    def until(self) -> int:
        """When trust ends, as far as is known now. It may end sooner."""
        if self._file is None:
            return self._counted
        while True:  # One store writes all eight bytes; two equal reads have seen no half of it.
            first, second = self._file[1], self._file[1]
            if first == second:
                return first

    def lasts(self) -> bool:
        """Whether trust lasts at this moment. Once the answer is no it stays no."""
        if self._over or os.getpid() != self._process:
            return False
        until = self.until()  # Loaded before the clock is read: a pause in between costs trust, and never adds any.
        if now() < until:
            return True
        self._over = True
        return False


def _map(path: str, hold: str, term: int) -> Optional[memoryview]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        page = mmap.mmap(descriptor, 128, prot=mmap.PROT_READ)
    finally:
        os.close(descriptor)
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = bytes.fromhex(file.read().strip().replace("-", ""))
    fits = page[0:8] == b"INCTRST1" and page[24:40] == bytes.fromhex(hold) and page[40:56] == boot
    words = memoryview(page).cast("Q")
    if fits and words[2] == term and words[7] == _time_namespace():
        return words
    return None


def _time_namespace() -> int:
    try:
        found = re.fullmatch(r"time:\[(\d+)\]", os.readlink("/proc/self/ns/time"))
    except FileNotFoundError:
        return 0  # A kernel without them has one clock for all.
    if found is None:
        raise ValueError("the time namespace can't be told")
    return int(found.group(1))
