// The kernels in single precision.
typedef float real;
#include "all.cuh"
