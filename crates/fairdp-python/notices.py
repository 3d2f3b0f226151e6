"""Writes THIRD-PARTY-NOTICES.txt: every crate that the wheel is linked from, with its licence.

    python crates/fairdp-python/notices.py            # after Cargo.lock has changed
    python crates/fairdp-python/notices.py --check    # whether it is what Cargo.lock says
    python crates/fairdp-python/notices.py --package fairdp --out FILE    # of a program

The crates are those of every platform. Needs cargo with the crates downloaded.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NOTICES = HERE / "THIRD-PARTY-NOTICES.txt"
TEXTS = re.compile(r"^(licen[cs]e|copying|notice|unlicense)", re.IGNORECASE)
RULE = "=" * 80


def cargo(*arguments: str) -> str:
    """What a cargo command says."""
    command = ["cargo", *arguments, "--locked"]
    return subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True).stdout


def linked_crates(package: str) -> dict[tuple[str, str], str]:
    """Licence identifiers by name and version: all that is linked, and neither built with nor ours.
    """
    kinds = ["--edges", "normal,no-proc-macro", "--target", "all"]
    lines = cargo("tree", "--package", package, *kinds, "--prefix", "none", "--format", "{p}\t{l}")
    crates = {}
    # A crate with a library and a program has a blank line between their trees.
    for line in filter(None, lines.splitlines()):
        crate, _, licence = line.removesuffix(" (*)").partition("\t")
        name, version, *rest = crate.split(" ")
        if not any(part.startswith("(/") or part[1:3] == ":\\" for part in rest):
            crates[name, version.removeprefix("v")] = licence.removesuffix(" (*)").strip()
    return crates


def listed_crates(text: str) -> dict[tuple[str, str], str]:
    """The same from the head of a file of notices."""
    lines = text.split(RULE, 1)[0].splitlines()
    rows = [line[2:].split(" ", 2) for line in lines if line.startswith("- ")]
    return {(name, version): licence for name, version, licence in rows}


def licence_texts(folder: Path, licence: str) -> list[str]:
    """The licence's files. Of alternatives, MIT's is enough."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and TEXTS.match(path.name))
    if folder.name.rsplit("-", 1)[0].endswith("-sys"):
        # The library that it is a binding of.
        files += sorted(path for path in folder.glob("*/LICENSE*") if path.is_file())
    mit = [path for path in files if "mit" in path.name.lower()]
    if mit and "MIT" in re.split(r" OR |/| / ", licence):
        files = mit
    return ["\n".join(line.rstrip() for line in path.read_text("utf-8", "replace").strip().splitlines()) for path in files]


def notices(package: str) -> str:
    """The whole file."""
    crates = linked_crates(package)
    packages = json.loads(cargo("metadata", "--format-version", "1"))["packages"]
    folders = {(package["name"], package["version"]): Path(package["manifest_path"]).parent for package in packages}
    by_text: dict[str, list[str]] = {}
    without = []
    for (name, version), licence in sorted(crates.items()):
        texts = licence_texts(folders[name, version], licence)
        for text in texts:
            by_text.setdefault(text, []).append(f"{name} {version}")
        if not texts:
            without.append(f"{name} {version}")
    parts = [
        f"{package} is linked from the crates below, on one platform or another.\n"
        "Each is listed with the licence that its authors declare; the texts that came with them follow. The\n"
        "standard library of Rust is linked too: MIT OR Apache-2.0, the Rust Project Developers.\n"
        f"Without a text of their own: {', '.join(without) or 'none'}.\n",
        "\n".join(f"- {name} {version} {licence}" for (name, version), licence in sorted(crates.items())) + "\n",
    ]
    parts += [f"{RULE}\n{', '.join(names)}\n\n{text}\n" for text, names in by_text.items()]
    return "\n".join(parts)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--package", default="fairdp-python", help="the crate of the program or of the extension")
    parser.add_argument("--out", type=Path, default=NOTICES, help="the file of notices")
    options = parser.parse_args()
    if not options.check:
        options.out.write_text(notices(options.package), "utf-8")
        return 0
    linked, listed = linked_crates(options.package), listed_crates(options.out.read_text("utf-8"))
    for name, version in sorted(linked.items() ^ listed.items()):
        print(f"{name}: {version}: {'not listed' if (name, version) in linked.items() else 'not linked'}", file=sys.stderr)
    return int(linked != listed)


if __name__ == "__main__":
    sys.exit(main())
