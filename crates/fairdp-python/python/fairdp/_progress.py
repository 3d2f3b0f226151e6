"""Progress of a run, for people who wait."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

Progress = Callable[[str, int, int], object]


class Shown:
    """Writes stage and step over one line of standard error, in a terminal and in a notebook."""

    def __init__(self) -> None:
        self._width = 0

    def __call__(self, stage: str, done: int, of: int) -> None:
        line = f"{stage}: {done:,} of {of:,}" if of else stage
        # Blanks take away what was longer before.
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def end(self) -> None:
        """Clears the line."""
        sys.stderr.write("\r" + " " * self._width + "\r")
        sys.stderr.flush()


def callback(progress: Any) -> Progress | None:
    """``True`` shows progress, a function is called with it, ``None`` and ``False`` are silent."""
    if progress is None or progress is False:
        return None
    if progress is True:
        return Shown()
    if not callable(progress):
        raise TypeError(f"progress = {progress!r}: expected True, None or a function of stage, steps done and all steps")
    found: Progress = progress
    return found


def end(progress: Progress | None) -> None:
    """Ends what :func:`callback` began."""
    if isinstance(progress, Shown):
        progress.end()
