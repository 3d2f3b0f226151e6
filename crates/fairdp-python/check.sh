#!/usr/bin/env bash
# Builds the wheel and runs what must hold of it, in a virtual environment under target/: tests (without PyTorch), types,
# the stable ABI, licences, size. Says so and succeeds where Python 3.10 with venv and its packages is not to be had.
set -euo pipefail
cd "$(dirname "$0")"
target=$(realpath -m "${CARGO_TARGET_DIR:-../../target}")/python

python=
for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
  if "$name" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    python=$name
    break
  fi
done
if [ -z "$python" ]; then
  echo "python: SKIPPED: there is no Python 3.10 or later with venv and pip"
  exit 0
fi
[ -x "$target/venv/bin/python" ] || "$python" -m venv "$target/venv"
export PATH="$target/venv/bin:$PATH" PIP_DISABLE_PIP_VERSION_CHECK=1
if ! pip install --quiet 'maturin>=1.16,<2'; then
  echo "python: SKIPPED: maturin cannot be installed; is there a network?"
  exit 0
fi

rm -rf "$target/wheels"
maturin build --release --locked --out "$target/wheels"
wheel=$(echo "$target"/wheels/*.whl)
pip install --quiet --force-reinstall --no-deps "$wheel"
pip install --quiet "$wheel[test]"

size=$(wc -c <"$wheel")
echo "python: $(basename "$wheel"): $size bytes"
[ "$size" -le 15000000 ] || { echo "python: the wheel is larger than 15 MB"; exit 1; }
contents=$(python -m zipfile --list "$wheel")
for file in LICENSE-APACHE LICENSE-MIT THIRD-PARTY-NOTICES.txt; do
  case $contents in
    *"dist-info/licenses/$file"*) ;;
    *) echo "python: the wheel lacks $file"; exit 1 ;;
  esac
done
abi3audit --strict "$wheel"
mypy --package fairdp
pytest --quiet -p no:cacheprovider tests
