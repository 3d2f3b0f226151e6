// Every kernel, for the number type `real`. One thread makes one item, and no thread waits for another: sums are taken in two launches,
// partial sums and then their total, in an order that does not depend on the device's scheduling.
#include "thread.cuh"

#include "activation.cuh"
#include "conv.cuh"
#include "divisor.cuh"
#include "dropout.cuh"
#include "embedding.cuh"
#include "integers.cuh"
#include "loss.cuh"
#include "noise.cuh"
#include "norm.cuh"
#include "optimiser.cuh"
#include "pool.cuh"
#include "rows.cuh"
#include "sequence.cuh"
#include "sums.cuh"
#include "update.cuh"
