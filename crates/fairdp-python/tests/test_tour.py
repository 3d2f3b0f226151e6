"""The tour in docs/python.md gives what it says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

TOUR = Path(__file__).resolve().parents[3] / "docs" / "python.md"


def test_the_tour_holds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # The end of a block would be taken for its last example's output.
    text = re.sub(r"^```.*$", "", TOUR.read_text("utf-8"), flags=re.MULTILINE)
    tour = doctest.DocTestParser().get_doctest(text, {}, "python.md", str(TOUR), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(tour)
    assert runner.tries > 20 and runner.failures == 0
