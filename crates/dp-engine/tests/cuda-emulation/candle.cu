// What the trainer uses of candle's own kernels.
typedef unsigned long long u64;
#define KERNEL extern "C" __global__ void

static u64 index() {
    return (u64)blockIdx.x * blockDim.x + threadIdx.x;
}

// Where element `i` of a tensor with these sizes and strides is. No `info` means contiguous.
static u64 place(u64 i, u64 n_dims, const u64 *info) {
    if (!info) return i;
    u64 at = 0;
    for (u64 k = n_dims; k-- > 0; i /= info[k]) at += i % info[k] * info[n_dims + k];
    return at;
}

KERNEL cast_f32_f64(u64 n, u64 n_dims, const u64 *info, const float *src, double *dst) {
    const u64 i = index();
    if (i < n) dst[i] = src[place(i, n_dims, info)];
}

KERNEL cast_f64_f32(u64 n, u64 n_dims, const u64 *info, const double *src, float *dst) {
    const u64 i = index();
    if (i < n) dst[i] = (float)src[place(i, n_dims, info)];
}

KERNEL ucopy_f32(u64 n, u64 n_dims, const u64 *info, const float *src, float *dst) {
    const u64 i = index();
    if (i < n) dst[i] = src[place(i, n_dims, info)];
}

KERNEL ucopy_f64(u64 n, u64 n_dims, const u64 *info, const double *src, double *dst) {
    const u64 i = index();
    if (i < n) dst[i] = src[place(i, n_dims, info)];
}

KERNEL copy2d_f32(const float *src, float *dst, unsigned int d1, unsigned int d2, unsigned int src_s, unsigned int dst_s) {
    const u64 i = index();
    if (i < (u64)d1 * d2) dst[i / d2 * dst_s + i % d2] = src[i / d2 * src_s + i % d2];
}

KERNEL copy2d_f64(const double *src, double *dst, unsigned int d1, unsigned int d2, unsigned int src_s, unsigned int dst_s) {
    const u64 i = index();
    if (i < (u64)d1 * d2) dst[i / d2 * dst_s + i % d2] = src[i / d2 * src_s + i % d2];
}
