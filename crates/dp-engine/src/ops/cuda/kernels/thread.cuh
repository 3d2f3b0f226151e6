// Which item a thread makes. Kernels are launched with at least `n` threads in one dimension.
#pragma once

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

__device__ inline u64 thread_index() {
    return (u64)blockIdx.x * blockDim.x + threadIdx.x;
}

#define KERNEL extern "C" __global__ void

// The thread's item, or the end of the kernel.
#define ITEM(i, n)               \
    const u64 i = thread_index(); \
    if (i >= n) return
