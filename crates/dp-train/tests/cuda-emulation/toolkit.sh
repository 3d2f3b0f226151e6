#!/usr/bin/env bash
# Makes a stand-in for a CUDA toolkit and driver in DIR, with which the CUDA path is built and run on a CPU: its kernels' arithmetic and the
# arguments they are launched with are then tested, not what a GPU makes of them. Needs g++. Prints the exports to eval:
#   eval "$(crates/dp-train/tests/cuda-emulation/toolkit.sh target/cuda-emulation)"
#   cargo test --release -p dp-train -p xtask --features xtask/cuda --lib --test suite --test cuda -- cuda on_a_device
set -euo pipefail
dir=$(realpath -m "${1:?usage: toolkit.sh DIR}")
here=$(dirname "$(realpath "$0")")
mkdir -p "$dir"/{bin,include,lib64/stubs,emulation}
cp "$here"/{device.h,table.h,candle.cu} "$dir/emulation"
cp "$here/nvcc" "$dir/bin"
cd "$here"
cargo fetch --quiet >&2
registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
cudarc=$(echo "$registry"/*/cudarc-0.19*/src)
# Functions that refuse to run: of a static library of candle's, and those of every library that cudarc links which are not emulated.
refusals() { # names, one a line
  printf '#include <stdio.h>\nstatic int refuse(const char *name) { return fprintf(stderr, "%%s is not emulated\\n", name), 801; }\n'
  sed 's/.*/int &(void) { return refuse("&"); }/'
}
grep -ohE 'pub fn [a-z0-9_A-Z]+' "$registry"/*/candle-kernels-0.11*/src/ffi.rs | sed 's/pub fn //' | sort -u |
  refusals > "$dir/emulation/static.c"
library() { # cudarc's module, file, name in the binary, prefix of its functions, source of those that are emulated
  local others=$dir/emulation/$1.c
  grep -ohE "^ +fn $4[A-Za-z0-9_]+" "$cudarc/$1/sys/mod.rs" | awk '{print $2}' | sort -u |
    { grep -vxF "$(grep -ohE "$4[A-Za-z0-9_]+\(" ${5:-/dev/null} | tr -d '(')" || true; } | refusals > "$others"
  gcc -c -fPIC -o "$others.o" "$others"
  g++ -std=c++17 -O2 -fPIC -shared "-Wl,-soname,$3" -o "$dir/lib64/$3" "$others.o" $5 -ldl
  ln -sf "../$3" "$dir/lib64/stubs/$2"
}
library driver libcuda.so libcuda.so.1 cu driver.cpp
library cublas libcublas.so libcublas.so.13 cublas blas.cpp
library cublaslt libcublasLt.so libcublasLt.so.13 cublasLt ''
library curand libcurand.so libcurand.so.10 curand rand.cpp
library nvrtc libnvrtc.so libnvrtc.so.13 nvrtc ''
echo 'int cudart_of_the_emulation(void) { return 0; }' | gcc -shared -fPIC -Wl,-soname,libcudart.so.13 -o "$dir/lib64/libcudart.so.13" -xc -
ln -sf ../libcudart.so.13 "$dir/lib64/stubs/libcudart.so"
stubs=$dir/lib64/stubs
echo "export CUDA_HOME='$dir' CUDA_ROOT='$dir' CUDA_PATH='$dir' PATH='$dir/bin':\"\$PATH\" CUDA_COMPUTE_CAP=80 REQUIRE_CUDA=1" \
  "LIBRARY_PATH='$stubs'\${LIBRARY_PATH:+:\$LIBRARY_PATH} LD_LIBRARY_PATH='$dir/lib64'\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
