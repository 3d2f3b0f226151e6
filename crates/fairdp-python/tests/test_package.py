"""What the package is besides its code: licences, notices, and an import that costs little."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[1]


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_the_notices_are_those_of_the_lock_file():
    checked = subprocess.run([sys.executable, str(HERE / "notices.py"), "--check"], capture_output=True, text=True)
    assert checked.returncode == 0, f"run crates/fairdp-python/notices.py:\n{checked.stderr}"


def test_the_notices_name_no_place_on_a_machine():
    notices = (HERE / "THIRD-PARTY-NOTICES.txt").read_text("utf-8")
    assert not any(place in notices for place in ("/root/", "/home/", "/Users/", ".cargo/registry", "C:\\"))


@pytest.mark.parametrize("name", ["LICENSE-APACHE", "LICENSE-MIT"])
def test_the_licences_are_the_workspaces(name):
    assert (HERE / name).read_bytes() == (HERE.parents[1] / name).read_bytes()


def test_importing_the_package_needs_neither_scikit_learn_nor_torch():
    code = "import sys, fairdp; print([name for name in ('sklearn', 'torch', 'pandas', 'polars') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
