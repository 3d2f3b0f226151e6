#!/usr/bin/env bash
# Tests `run` with programs, libraries and tools that do nothing: what it finds, skips, ends and
# says.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
mkdir -p "$dir"/{archive/bin,tools,site-packages/nvidia/cu13/lib}
cd "$dir/archive"
cp "$here/run" .
echo 1234567 > revision
# A name that no machine has.
echo libcuda-of-a-test.so.1 > libraries

program() { # path, body
  printf '#!/usr/bin/env bash\n%s\n' "$2" > "$1"
  chmod +x "$1"
}
for name in dp-engine-unit dp-train-suite dp-audit-cuda xtask-cuda xtask; do
  program "bin/$name" "echo \"$name \$*\""
done

# Runs `run` with these arguments; its status must be the first argument, its output must match the
# second.
expect() {
  local status=0 output
  output=$(./run --out "$dir/results" "${@:3}" 2>&1) || status=$?
  if [ "$status" != "$1" ] || ! grep -qE "$2" <<< "$output"; then
    printf 'error: run %s: expected status %s and "%s", got %s and\n%s\n' "${*:3}" "$1" "$2" "$status" "$output" >&2
    exit 1
  fi
}

expect 2 'error: fast: expected' fast
expect 2 'error: --limit 0: expected' --limit 0
expect 1 'error: libcuda-of-a-test.so.1: not found; looked in'
touch "$dir/site-packages/nvidia/cu13/lib/libcuda-of-a-test.so.1"
export PYTHONPATH=$dir/site-packages
expect 0 'libcuda-of-a-test.so.1: .*site-packages/nvidia/cu13/lib$' correctness
expect 0 '^correctness: passed' correctness
expect 0 '^xtask bench step --model resnet18 --mode private' speed
program bin/dp-train-suite 'echo "a test panicked"; exit 101'
expect 1 'correctness: FAILED: failed with status 101' correctness speed
expect 1 'a test panicked' correctness
program bin/dp-train-suite 'sleep 60'
expect 1 'correctness: FAILED: not done after 1 s' --limit 1 correctness
program bin/dp-train-suite 'echo dp-train-suite'

export PATH=$dir/tools:$PATH
program "$dir/tools/compute-sanitizer" 'echo "Error: Device not supported"; exit 1'
expect 0 'memcheck: SKIPPED: compute-sanitizer cannot work here' memcheck
# Runs what comes after the tool's name and the status for errors.
program "$dir/tools/compute-sanitizer" 'shift 2; [ "$1" != --error-exitcode ] || shift 2; "$@"'
expect 0 'initcheck: passed' initcheck
program "$dir/tools/ncu" 'echo "==ERROR== ERR_NVGPUCTRPERM"; exit 1'
expect 0 'profile: SKIPPED: ncu cannot work here' profile
program "$dir/tools/ncu" 'printf "\"Kernel Name\",\"Metric Value\"\n\"fill\",\"1,250,000\"\n\"fill\",\"750,000\"\n"'
expect 0 ' 2\.000 +2 fill$' profile
echo 'run: as expected'
