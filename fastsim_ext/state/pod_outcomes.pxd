# Outcome rows, one for each end of a stay or pod, and the values taken from them.
from libc.math cimport NAN
from libc.stdint cimport int64_t, uint64_t

cdef enum:  # Reason: how an interval of a pod ended; order of fastsim.engine.tables.REASONS
    FINISHED, RUNNING, NODE_LOST, EVICTED, PREEMPTED, PENDING, TOO_LARGE, GANG, OVER_QUOTA
    NO_NODE, NO_MATCH, NO_GPU_MODEL, NO_GPU, NO_CPU, NO_MEMORY, NO_EXTRA, NO_POD_SLOT, SPREAD, POD_LIMIT
    OUT_OF_MEMORY, GANG_TOO_LARGE, NO_GPU_MEMORY
    PEERS                # the last check: rules about the pods of a domain

cdef enum:  # Closes: what ends with an outcome row, as bits
    INTERVAL = 1         # a stay on a node, or a wait without one
    POD = 2              # the pod's time in the system
    START = 4            # nothing: a stay begins (only on request)

cdef enum:  # Span: values taken from outcome rows; order of fastsim.engine.checkpoint_folder.SPANS
    WAIT, JCT, LOST, SLOWDOWN, PAUSED, WASTED, SPANS

cdef struct Outcome:     # one row for the result; 8-byte fields only, so numpy reads it as it is
    int64_t seq, pod_id, node, attempt, reason, closes
    uint64_t gpus
    double submit, first_start, start, end           # seconds; NaN = not
    int64_t preemptions
    double lost          # seconds of work lost so far
    double ideal, paused                 # its duration; seconds between its stays so far, NaN = never started
    double gpu_s, wasted                 # GPU seconds so far; those of lost work and of restarts
    double cost          # $ so far; NaN = unknown

cdef inline int checks_passed(int reason) noexcept nogil:
    """A number that grows with the checks which an empty node passes before it fails for this Reason."""
    if reason == NO_GPU_MEMORY:          # looked at between the number of GPUs and CPUs
        return 2 * NO_GPU + 1
    return 2 * POD_LIMIT + 1 if reason == NO_MATCH else 2 * reason       # labels come last

cdef inline int lasting_reason(int furthest, bint gpus) noexcept nogil:
    """The Reason of a pod that no empty node hosts, from the furthest check and whether any node has a GPU."""
    if furthest == NO_GPU_MODEL or furthest == NO_GPU:
        return NO_GPU if not gpus else NO_GPU_MODEL if furthest == NO_GPU_MODEL else TOO_LARGE
    if furthest in (NO_MATCH, NO_EXTRA, NO_POD_SLOT, NO_GPU_MEMORY):
        return furthest
    return TOO_LARGE

cdef inline int64_t outcome_restarts(const Outcome* row) noexcept nogil:
    """Stays other than the first, of a row that ends its pod."""
    return max(0, row.attempt + (row.start == row.start) - 1)

cdef inline double outcome_slowdown(const Outcome* row, double jct_s) noexcept nogil:
    """Completion over ideal time; NaN of a pod whose ideal time is shorter than a nanosecond, or unknown."""
    return jct_s / row.ideal if row.ideal >= 1e-9 else NAN

cdef outcome_spans(const Outcome* row, int64_t n, double[:, ::1] room)
