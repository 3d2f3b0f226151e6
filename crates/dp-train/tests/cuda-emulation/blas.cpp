// The matrix products of cuBLAS, by their definition; matrices are stored by columns.
typedef void *Handle;
enum { SUCCESS = 0, INVALID_VALUE = 7, NORMAL = 0 };

template <class T>
static int product(int op_a, int op_b, int m, int n, int k, const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c,
                   int ldc) {
    if (m < 0 || n < 0 || k < 0 || lda < (op_a == NORMAL ? m : k) || ldb < (op_b == NORMAL ? k : n) || ldc < m) return INVALID_VALUE;
    for (long j = 0; j < n; j++) {
        for (long i = 0; i < m; i++) {
            double sum = 0;
            for (long l = 0; l < k; l++)
                sum += (double)a[op_a == NORMAL ? i + l * lda : l + i * lda] * b[op_b == NORMAL ? l + j * ldb : j + l * ldb];
            // With a factor of 0 what was there is not read.
            c[i + j * ldc] = (T)(*alpha * sum + (*beta == 0 ? 0 : *beta * c[i + j * ldc]));
        }
    }
    return SUCCESS;
}

template <class T>
static int products(int op_a, int op_b, int m, int n, int k, const T *alpha, const T *a, int lda, long long stride_a, const T *b, int ldb,
                    long long stride_b, const T *beta, T *c, int ldc, long long stride_c, int batch) {
    int status = SUCCESS;
    for (long long i = 0; i < batch && status == SUCCESS; i++)
        status = product(op_a, op_b, m, n, k, alpha, a + i * stride_a, lda, b + i * stride_b, ldb, beta, c + i * stride_c, ldc);
    return status;
}

extern "C" {

int cublasCreate_v2(Handle *handle) { return *handle = (Handle)4, SUCCESS; }
int cublasDestroy_v2(Handle) { return SUCCESS; }
int cublasSetStream_v2(Handle, Handle) { return SUCCESS; }

int cublasSgemm_v2(Handle, int op_a, int op_b, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb,
                   const float *beta, float *c, int ldc) {
    return product(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

int cublasDgemm_v2(Handle, int op_a, int op_b, int m, int n, int k, const double *alpha, const double *a, int lda, const double *b, int ldb,
                   const double *beta, double *c, int ldc) {
    return product(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

int cublasSgemmStridedBatched(Handle, int op_a, int op_b, int m, int n, int k, const float *alpha, const float *a, int lda,
                              long long stride_a, const float *b, int ldb, long long stride_b, const float *beta, float *c, int ldc,
                              long long stride_c, int batch) {
    return products(op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, batch);
}

int cublasDgemmStridedBatched(Handle, int op_a, int op_b, int m, int n, int k, const double *alpha, const double *a, int lda,
                              long long stride_a, const double *b, int ldb, long long stride_b, const double *beta, double *c, int ldc,
                              long long stride_c, int batch) {
    return products(op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, batch);
}
}
