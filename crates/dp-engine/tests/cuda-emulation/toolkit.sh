#!/usr/bin/env bash
# Makes a stand-in for a CUDA toolkit and driver in DIR, with which the CUDA path is built and run
# on a CPU: its kernels' arithmetic and the arguments they are launched with are then tested, not
# what a GPU makes of them. Needs g++. Prints the exports to eval:
#   eval "$(crates/dp-engine/tests/cuda-emulation/toolkit.sh target/cuda-emulation)"
#   cargo test --release -p dp-train -p xtask --features xtask/cuda --lib --test suite --test cuda -- cuda on_a_device
set -euo pipefail
dir=$(realpath -m "${1:?usage: toolkit.sh DIR}")
here=$(dirname "$(realpath "$0")")
cd "$here"
. ./stubs.sh
cargo fetch --quiet --locked >&2
mkdir -p "$dir"/{bin,include,lib64,emulation}
cp device.h entry.h table.h candle.cu faulty_kernels.h "$dir/emulation"
# Kernels are compiled again when the compiler changes, and what it includes is part of it.
{ cat nvcc; echo "# $(cat "$dir"/emulation/*.{h,cu} | sha256sum)"; } > "$dir/emulation/nvcc"
if ! cmp -s "$dir/emulation/nvcc" "$dir/bin/nvcc"; then
  cp "$dir/emulation/nvcc" "$dir/bin/nvcc"
  chmod +x "$dir/bin/nvcc"
fi
static_kernels "$dir/emulation/static.o"
libraries "$dir/lib64" driver.cpp blas.cpp rand.cpp nccl.cpp
stubs=$dir/lib64/stubs
echo "export CUDA_HOME='$dir' CUDA_ROOT='$dir' CUDA_PATH='$dir' PATH='$dir/bin':\"\$PATH\" REQUIRE_CUDA=1 EMULATED_CUDA=1" \
  "LIBRARY_PATH='$stubs'\${LIBRARY_PATH:+:\$LIBRARY_PATH} LD_LIBRARY_PATH='$dir/lib64'\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
