#!/usr/bin/env bash
# Tests of runs on several processes: where MPI and libclang are, otherwise it says that they were skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
has_libclang() {
  [ -n "${LIBCLANG_PATH:-}" ] || compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null ||
    { command -v ldconfig >/dev/null && ldconfig -p | grep libclang >/dev/null; }
}
for program in mpicc mpirun; do
  command -v "$program" >/dev/null || { echo "ranks: SKIPPED, $program is not installed"; exit 0; }
done
has_libclang || { echo "ranks: SKIPPED, libclang is not installed"; exit 0; }
exec cargo test --release --locked --package fairdp --features mpi --test suite ranks
