# Stand-ins for what the trainer links and never calls. Sourced; needs gcc.

# Reads names of functions, one a line, and writes C functions that refuse to run.
refusals() {
  printf '#include <stdio.h>\nstatic int refuse(const char *name) { return fprintf(stderr, "%%s is not there\\n", name), 801; }\n'
  sed 's/.*/int &(void) { return refuse("&"); }/'
}

# Where cargo keeps the sources of a crate: its name with the start of its version.
source_of() {
  local found=("${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$1"*/src)
  if [ ! -d "${found[0]}" ]; then
    echo "error: no source of $1: run cargo fetch" >&2
    return 1
  fi
  echo "${found[0]}"
}

# candle's statically linked kernels, as one object file.
static_kernels() { # object file
  local ffi
  ffi=$(source_of candle-kernels-0.11)/ffi.rs
  grep -ohE 'pub fn [a-z0-9_A-Z]+' "$ffi" | sed 's/pub fn //' | sort -u | refusals |
    gcc -c -fPIC -xc -o "$1" -
}

# Functions of a library as cudarc declares them, but for those that a source has.
functions() { # cudarc's module, prefix of its functions, source
  grep -ohE "^ +fn $2[A-Za-z0-9_]+" "$(source_of cudarc-0.19)/$1/sys/mod.rs" | awk '{print $2}' | sort -u |
    { grep -vxF "$(grep -ohE "\b$2[A-Za-z0-9_]+\(" "${3:-/dev/null}" | tr -d '(')" || true; }
}

# A library in DIR with the functions of one that cudarc links; `stubs` has it by the linker's name.
library() { # DIR, cudarc's module, file, name in programs that link it, prefix of its functions, source of some
  local dir=$1 object=$1/$2.o source=${6:-}
  mkdir -p "$dir/stubs"
  functions "$2" "$5" "$source" | refusals | gcc -c -fPIC -xc -o "$object" -
  g++ -std=c++17 -O2 -ffp-contract=off -Wall -Wextra -fPIC -shared "-Wl,-soname,$4" -o "$dir/$4" "$object" \
    ${source:+"$source"} -ldl
  rm "$object"
  ln -sf "../$4" "$dir/stubs/$3"
}

# The toolkit's libraries and the driver's in DIR; the sources have what is emulated of driver,
# cuBLAS, cuRAND and NCCL.
libraries() { # DIR, driver, cuBLAS, cuRAND, NCCL
  library "$1" driver libcuda.so libcuda.so.1 cu "${2:-}"
  library "$1" cublas libcublas.so libcublas.so.13 cublas "${3:-}"
  library "$1" cublaslt libcublasLt.so libcublasLt.so.13 cublasLt
  library "$1" curand libcurand.so libcurand.so.10 curand "${4:-}"
  library "$1" nccl libnccl.so libnccl.so.2 nccl "${5:-}"
  library "$1" nvrtc libnvrtc.so libnvrtc.so.13 nvrtc
  library "$1" runtime libcudart.so libcudart.so.13 cuda
}
