"""Options of this build of the compiled packages."""

cdef extern from *:
    """
    static const char *fastsim_flags = FASTSIM_FLAGS;
    static const int fastsim_checked = FASTSIM_CHECKED;
    """
    const char *fastsim_flags
    const int fastsim_checked


CHECKED = fastsim_checked == 1
FLAGS = fastsim_flags.decode("ascii")


def product_sum(double a, double b, double c):
    """a*b + c as the kernels round it: twice, never once as a fused multiply-add would."""
    return a * b + c
