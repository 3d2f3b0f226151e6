#!/bin/sh
# One training step of ours, PyTorch, Opacus and JAX, in turns on two threads: a table of milliseconds.
#
#     docs/benchmarks/side_by_side.sh [ROUNDS] [MODEL…]
#
# PYTHON names an interpreter with torch and opacus, or jax; PYTHON_JAX one with jax, if it is another.
# What neither has is left out. XTASK names a built program; an older one in OLD is measured too.
set -eu
cd "$(dirname "$0")/../.."
rounds=${1:-3}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- lr mlp esipova-cnn zhao-cnn resnet18
python=${PYTHON:-python3}
jax=${PYTHON_JAX:-$python}
if [ -z "${XTASK:-}" ]; then
    cargo build --release -q -p xtask
    XTASK=target/release/xtask
fi
export OMP_NUM_THREADS=2 JAX_PLATFORMS=cpu CUDA_VISIBLE_DEVICES=
results=$(mktemp)
trap 'rm -f "$results"' EXIT

# A line of the results: model, program, JSON.
measure() {
    model=$1 program=$2
    shift 2
    printf '%s\t%s\t%s\n' "$model" "$program" "$("$@")" >>"$results"
}

round=0
while [ "$round" -lt "$rounds" ]; do
    for model in "$@"; do
        batch=256 ours=200 theirs=20
        case $model in
            resnet18) batch=32 ours=20 theirs=5 ;;
            *-cnn) ours=20 theirs=5 ;;
        esac
        for mode in plain private; do
            for program in "$XTASK" ${OLD:-}; do
                name="ours, $mode"
                [ "$program" = "$XTASK" ] || name="before, $mode"
                measure "$model" "$name" "$program" bench step --model "$model" --mode "$mode" --batch "$batch" \
                    --steps "$ours" --threads 2 --json
            done
        done
        for peer in torch opacus jax; do
            with=$python
            [ "$peer" = jax ] && with=$jax
            measure "$model" "$peer" "$with" docs/benchmarks/step_peers.py --program "$peer" --model "$model" \
                --batch "$batch" --steps "$theirs"
        done
    done
    round=$((round + 1))
done

"$python" - "$results" <<'TABLE'
import json, statistics, sys
times = {}
for line in open(sys.argv[1]):
    model, program, result = line.rstrip("\n").split("\t")
    value = json.loads(result).get("ms_per_step")
    if value is not None:
        times.setdefault(model, {}).setdefault(program, []).append(value)
print("| model | program | ms a step, lowest of the rounds | over ours, private: median of the rounds |")
print("|---|---|---|---|")
for model, programs in times.items():
    for program, values in programs.items():
        ratio = statistics.median(a / b for a, b in zip(values, programs["ours, private"]))
        print(f"| {model} | {program} | {min(values):.3g} | {ratio:.2f} |")
TABLE
