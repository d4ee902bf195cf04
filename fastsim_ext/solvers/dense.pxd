# Symmetric matrices, row after row, and equations with them.

cdef void dense_factor(double* a, int n) noexcept nogil
cdef void dense_solve(const double* a, int n, double* b) noexcept nogil
