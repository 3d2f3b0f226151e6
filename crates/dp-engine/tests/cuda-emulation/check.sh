#!/usr/bin/env bash
# Builds the CUDA path with the emulation and tests it: as it is; with everything that is left open
# to a GPU done in another way; and with each planted fault, which tests must find. Needs g++.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
exports=$(crates/dp-engine/tests/cuda-emulation/toolkit.sh target/cuda-emulation)
eval "$exports"
# Property tests do not call for a device; the names of all others that do contain one of these.
names=(cuda on_a_device)

tests() {
  cargo test --release --locked -p dp-engine -p dp-train -p dp-audit -p xtask --features xtask/nccl "$@"
}

echo '== as it is'
tests --lib --test suite --test cuda -- "${names[@]}"
# The networks at their sizes take minutes, and have no kernel of their own.
echo '== threads last to first, sums in an unfavourable order, work as late as allowed'
EMULATE_BACKWARDS=1 EMULATE_LATE=1 tests --lib --test suite -- "${names[@]}" --skip published_networks
log=$(mktemp)
trap 'rm "$log"' EXIT
for fault in tf32 dropped-scale stale-winner early-release; do
  echo "== fault $fault"
  EMULATE_FAULT=$fault tests --no-fail-fast --test suite --test cuda -- "${names[@]}" --skip published_networks > "$log" 2>&1 || true
  n_failed=$(grep -cE '^test .* FAILED$' "$log" || true)
  if [ "$n_failed" = 0 ]; then
    tail -n 40 "$log"
    echo "error: fault $fault: expected tests to fail, got none" >&2
    exit 1
  fi
  echo "found by $n_failed tests: $(sed -nE 's/^test (cuda::)?(.*) \.\.\. FAILED$/\2/p' "$log" | xargs)"
done
