// The matrix products of cuBLAS, by their definition; matrices are stored by columns.
#include <math.h>
#include <stdint.h>

#include "entry.h"
#include "fault.h"

typedef void *Handle;
enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, NORMAL = 0 };
// Of the types, the arithmetics and the algorithms those that are emulated.
enum { SINGLE = 0, DOUBLE = 1, COMPUTE_SINGLE = 69, COMPUTE_DOUBLE = 71, COMPUTE_TF32 = 77, DEFAULT_ALGORITHM = -1 };

// cuBLAS's handle: where its work goes.
struct Blas {
    Handle stream = nullptr;
};

extern "C" void emulated_give(Handle stream, Work *work);

// Whether factors keep only the digits of TF32: as the call says, unless the environment says
// otherwise; or by the fault, which leaves out products of the size that a device is checked with
// when it is opened: cuBLAS chooses its kernels by size.
static bool is_tf32(int compute, int k) {
    if (is_planted("tf32") && k != 128) return true;
    const char *override = getenv("NVIDIA_TF32_OVERRIDE");
    return override ? strcmp(override, "1") == 0 : compute == COMPUTE_TF32;
}

// With ten bits of mantissa: the nearest number that has them.
static float factor(float value, bool tf32) {
    if (!tf32 || !isfinite(value)) return value;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + (1u << 12)) & ~((1u << 13) - 1);
    return memcpy(&value, &bits, sizeof bits), value;
}
static double factor(double value, bool) {
    return value;
}

// Products and sums are rounded to the number type. The order of additions is cuBLAS's own affair
// and depends on the shape: here so many sums of every so manieth term are added. With
// EMULATE_BACKWARDS set, all positive terms are added before the others, which makes partial sums,
// and so their roundings, as large as they can be.
template <class T, class Term> static T sum(long n, int lanes, Term term) {
    static const bool signs_apart = getenv("EMULATE_BACKWARDS");
    T sum = 0;
    for (int pass = 0; pass < (signs_apart ? 2 : 1); pass++) {
        for (int lane = 0; lane < lanes; lane++) {
            T of_lane = 0;
            for (long l = lane; l < n; l += lanes) {
                const T value = term(l);
                if (!signs_apart || (value > 0) == (pass == 0)) of_lane += value;
            }
            sum += of_lane;
        }
    }
    return sum;
}

// A matrix of a product, as it is stored or with rows and columns exchanged.
template <class T> struct Matrix {
    const T *values;
    long stride;
    bool normal;

    T at(long row, long column) const { return values[normal ? row + column * stride : column + row * stride]; }
};

template <class T>
static void multiply(bool tf32, int lanes, int m, int n, int k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T *c, long ldc) {
    bool finite = true;
    for (long l = 0; l < k; l++)
        for (long i = 0; i < m; i++) finite = finite && isfinite(a.at(i, l));
    for (long j = 0; j < n; j++) {
        // Padding is cheap: zeros times numbers.
        bool zero = finite;
        for (long l = 0; l < k && zero; l++) zero = b.at(l, j) == 0;
        for (long i = 0; i < m; i++) {
            const T value = sum<T>(zero ? 0 : k, lanes, [=](long l) { return factor(a.at(i, l), tf32) * factor(b.at(l, j), tf32); });
            T &to = c[i + j * ldc];
            // With a factor of 0 what was there is not read.
            to = alpha * value + (beta == 0 ? 0 : beta * to);
        }
    }
}

template <class T>
static int products(Handle handle, bool tf32, int op_a, int op_b, int m, int n, int k, const T *alpha, const T *a, int lda, long long stride_a,
                    const T *b, int ldb, long long stride_b, const T *beta, T *c, int ldc, long long stride_c, int batch) {
    if (m < 0 || n < 0 || k < 0 || lda < (op_a == NORMAL ? m : k) || ldb < (op_b == NORMAL ? k : n) || ldc < m) return INVALID_VALUE;
    Work work = [=, alpha = *alpha, beta = *beta] {
        const int lanes = 1 + (m % 7 + n % 11 + k % 5 + batch % 13) % 4;
        for (long long i = 0; i < batch; i++) {
            const Matrix<T> left = {a + i * stride_a, lda, op_a == NORMAL}, right = {b + i * stride_b, ldb, op_b == NORMAL};
            multiply(tf32, lanes, m, n, k, alpha, left, right, beta, c + i * stride_c, ldc);
        }
    };
    return emulated_give(((Blas *)handle)->stream, &work), SUCCESS;
}

extern "C" {

int cublasCreate_v2(Handle *handle) { return *handle = new Blas, SUCCESS; }
// As after a fault of the device.
int cublasDestroy_v2(Handle) { return NOT_INITIALIZED; }
int cublasSetStream_v2(Handle handle, Handle stream) { return ((Blas *)handle)->stream = stream, SUCCESS; }
int cublasGetVersion_v2(Handle, int *version) { return *version = 130000, SUCCESS; }
int cublasSetMathMode(Handle, int) { return SUCCESS; }
int cublasSetWorkspace_v2(Handle, void *workspace, size_t bytes) { return workspace && bytes ? SUCCESS : INVALID_VALUE; }

// Single and double precision, in their own arithmetic or, of single precision, in TF32.
int cublasGemmStridedBatchedEx(Handle handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda,
                               long long stride_a, const void *b, int type_b, int ldb, long long stride_b, const void *beta, void *c,
                               int type_c, int ldc, long long stride_c, int batch, int compute, int algorithm) {
    if (type_a != type_b || type_a != type_c || algorithm != DEFAULT_ALGORITHM) return INVALID_VALUE;
    if (type_a == SINGLE && (compute == COMPUTE_SINGLE || compute == COMPUTE_TF32))
        return products(handle, is_tf32(compute, k), op_a, op_b, m, n, k, (const float *)alpha, (const float *)a, lda, stride_a,
                        (const float *)b, ldb, stride_b, (const float *)beta, (float *)c, ldc, stride_c, batch);
    if (type_a == DOUBLE && compute == COMPUTE_DOUBLE)
        return products(handle, false, op_a, op_b, m, n, k, (const double *)alpha, (const double *)a, lda, stride_a, (const double *)b, ldb,
                        stride_b, (const double *)beta, (double *)c, ldc, stride_c, batch);
    return INVALID_VALUE;
}

int cublasGemmEx(Handle handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda,
                 const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc, int compute, int algorithm) {
    return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta, c, type_c, ldc, 0, 1,
                                      compute, algorithm);
}
}
