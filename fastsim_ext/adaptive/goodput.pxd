# Goodput of a training job whose batch size may change: samples a second, each weighed by what it teaches.
from libc.stdint cimport int64_t

cdef enum:
    CANDIDATES = 50      # total batch sizes that are tried

cdef struct Perf:        # how long steps take, seconds
    double alpha_c, beta_c   # arithmetic: fixed, for each sample
    double alpha_n, beta_n   # network between nodes: fixed, for each GPU beyond two
    double alpha_r, beta_r   # network inside a node
    double gamma             # overlap of both: 1 = none

cdef struct Noise:       # gradients at the present stage of training
    double sqr           # squared norm of the true gradient
    double var           # variance
    double init_batch    # batch size at which a sample counts as one, samples

cdef struct Limits:
    int64_t max_batch    # samples of a step, all GPUs together
    int64_t low          # samples that a GPU takes at once: fewest, most
    int64_t high
    bint accumulation    # several turns before an update are allowed
    bint tuned           # false: max_batch is the batch size
    bint float32         # candidates in single precision

cdef struct Choice:
    double goodput       # samples/s; 0 = no batch size is possible
    int64_t atomic       # samples a GPU takes at once
    int64_t accum        # turns before the one that updates

cdef struct Grid:        # candidates from start to stop, made anew when these change
    double start, stop
    bint float32, made
    double[CANDIDATES] batch

cdef double goodput_throughput(const Perf* perf, int64_t nodes, int64_t replicas, int64_t atomic,
                               int64_t accum) noexcept nogil
cdef double goodput_efficiency(const Noise* noise, double batch) noexcept nogil
cdef void goodput_best(const Perf* perf, const Noise* noise, const Limits* limits, int64_t nodes, int64_t replicas,
                       Grid* grid, Choice* best) noexcept nogil
cdef void goodput_staged(const Perf* perf, const Noise* noise, int64_t max_batch, int64_t stages, int64_t micro,
                         int64_t nodes, int64_t pipelines, Choice* best) noexcept nogil
