// The kernels in double precision.
typedef double real;
#include "all.cuh"
