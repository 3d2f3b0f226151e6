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
template <u32 N> static const Numbers<N> *of_the_first(PoolShape shape, const Numbers<N> *winners) {
    const u64 pixels = (u64)shape.height.by * shape.width.by, windows = (u64)shape.out_height.by * shape.out_width.by;
    const u64 image = thread_index() / (pixels * shape.channels.by);
    return winners - image * windows * shape.channels.by;
}

KERNEL max_pool_backward_of_the_first(u64 n, PoolShape shape, Adjacent<1> *out, const Adjacent<1> *gradients, const Numbers<1> *winners) {
    max_pool_backward(n, shape, out, gradients, of_the_first(shape, winners));
}

KERNEL max_pool_backward_in_runs_of_the_first(u64 n, PoolShape shape, Run *out, const Run *gradients, const Numbers<RUN> *winners) {
    max_pool_backward_in_runs(n, shape, out, gradients, of_the_first(shape, winners));
}

#define PLANTED                                                                \
    FAULTY("dropped-scale", scale_rows, scale_rows_but_the_first),             \
    FAULTY("stale-winner", max_pool_backward, max_pool_backward_of_the_first), \
    FAULTY("stale-winner", max_pool_backward_in_runs, max_pool_backward_in_runs_of_the_first),
