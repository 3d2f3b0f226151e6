// Kernels with a planted fault, each in the place of another.

// The scale of a batch's first record is left out.
KERNEL scale_rows_but_the_first(u64 n, Divisor columns, real *dst, const real *src, const double *weights) {
    const u64 i = thread_index();
    if (i < columns.by) {
        dst[i] = src[i];
    } else {
        scale_rows(n, columns, dst, src, weights);
    }
}

// Every image has the winners of the batch's first.
KERNEL max_pool_backward_of_the_first(u64 n, PoolShape shape, real *out, const real *gradients, const u16 *winners) {
    const u64 pixels = (u64)shape.height.by * shape.width.by, windows = (u64)shape.out_height.by * shape.out_width.by;
    const u64 image = thread_index() / (pixels * shape.channels.by);
    max_pool_backward(n, shape, out, gradients, winners - image * windows * shape.channels.by);
}

#define PLANTED                                                    \
    FAULTY("dropped-scale", scale_rows, scale_rows_but_the_first), \
    FAULTY("stale-winner", max_pool_backward, max_pool_backward_of_the_first),
