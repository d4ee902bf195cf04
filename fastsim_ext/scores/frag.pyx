"""Fragmentation of a node for a target workload, and the score that grows from it.

The fragmentation of a node is the free GPU share that pods of the target workload cannot use,
averaged over those pods. Buckets are summed over the typical pods in their given order, because
the score is truncated to an integer and the last bit of a sum can move a placement.
"""

from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy
from fastsim_ext.scores.device cimport device_idle
from fastsim_ext.types cimport (
    FULL, FRAG_CLASSES, LANES, MAX_GPUS, NO_ACCESS, Q1_LACK_BOTH, Q2_LACK_GPU, Q3_SATISFIED, Q4_LACK_CPU,
    XL_SATISFIED, XR_LACK_CPU, Kind, Node, Pod, Typical,
)


cdef inline int64_t frag_levels(const int32_t* gpu_left, int width, const Typical* typical) noexcept nogil:
    """Write ``fit`` and ``small`` for every distinct milli; returns the free milli of the node."""
    cdef int level, g, block
    cdef int32_t need, left, fit, small, free = 0
    for g in range(width):
        free += gpu_left[g]
    for level in range(typical.n_levels):
        need = typical.level_milli[level]
        fit = 0
        small = 0
        # Branch-free over a fixed number of lanes: padding devices have 0 left and never count.
        block = 0
        while block < width:
            for g in range(LANES):
                left = gpu_left[block + g]
                fit += left >= need
                small += left * (left < need)
            block += LANES
        typical.fit[level] = fit
        typical.small[level] = small
    return free


cdef void frag_classes(int64_t cpu_left, const int32_t* gpu_left, const Node* node, const Typical* typical,
                       const share_t* share, share_t* out__k) noexcept nogil:
    """Free milli-GPU by FragClass, weighted by ``share`` of each typical pod."""
    cdef int i
    cdef bint cpu_ok
    cdef const Kind* kind
    cdef int64_t small
    cdef int64_t free = frag_levels(gpu_left, node.width, typical)
    cdef uint64_t model = (<uint64_t> 1) << node.model if node.model >= 0 else 0
    for i in range(FRAG_CLASSES):
        out__k[i] = 0
    if free == 0:
        return
    for i in range(typical.n):
        cpu_ok = cpu_left >= typical.cpu[i]
        kind = &typical.kinds[typical.kind[i]]
        if kind.level < 0:
            out__k[XL_SATISFIED if cpu_ok else XR_LACK_CPU] += share[i] * <share_t> free
        elif kind.models != 0 and (kind.models & model) == 0:
            out__k[NO_ACCESS] += share[i] * <share_t> free
        elif typical.fit[kind.level] < kind.num:
            out__k[Q2_LACK_GPU if cpu_ok else Q1_LACK_BOTH] += share[i] * <share_t> free
        elif cpu_ok:
            small = typical.small[kind.level]
            out__k[Q2_LACK_GPU] += share[i] * <share_t> small
            out__k[Q3_SATISFIED] += share[i] * <share_t> (free - small)
        else:
            out__k[Q4_LACK_CPU] += share[i] * <share_t> free


cdef int64_t frag_unusable(const int32_t* gpu_left, const Node* node, const Typical* typical) noexcept nogil:
    """Free milli-GPU that each kind of typical pod cannot use, by class; returns the free milli of the node.

    A kind has two rows, for too little CPU and for enough, each of Q1, Q2, Q4 and no access. Kinds without devices
    have zeros.
    """
    cdef int64_t free = frag_levels(gpu_left, node.width, typical)
    cdef uint64_t model = (<uint64_t> 1) << node.model if node.model >= 0 else 0
    cdef double* lacking = typical.unusable__kq
    cdef double* enough
    cdef const Kind* kind
    cdef int k, q
    for k in range(typical.n_kinds):
        enough = lacking + UNUSABLE
        kind = &typical.kinds[k]
        for q in range(2 * UNUSABLE):
            lacking[q] = 0.0
        if kind.level >= 0:
            if kind.models != 0 and (kind.models & model) == 0:
                enough[3] = lacking[3] = free
            elif typical.fit[kind.level] < kind.num:
                enough[1] = lacking[0] = free
            else:
                enough[1], lacking[2] = typical.small[kind.level], free
        lacking += 2 * UNUSABLE
    return free


cdef double frag_amount(int64_t cpu_left, const int32_t* gpu_left, const Node* node,
                        const Typical* typical) noexcept nogil:
    """Fragmentation F in milli-GPU: every class but the satisfied one, summed in class order.

    Each class is summed over the pods in their given order; a pod of another class adds 0, which changes no bit.
    """
    cdef int i
    cdef double share
    cdef double q1 = 0.0
    cdef double q2 = 0.0
    cdef double q4 = 0.0
    cdef double xl = 0.0
    cdef double xr = 0.0
    cdef double closed = 0.0
    cdef const double* row
    cdef double free = <double> frag_unusable(gpu_left, node, typical)
    for i in range(typical.n_gpu):
        row = typical.unusable__kq + (2 * typical.kind[i] + (cpu_left >= typical.cpu[i])) * UNUSABLE
        share = typical.freq[i]
        q1 += share * row[0]
        q2 += share * row[1]
        q4 += share * row[2]
        closed += share * row[3]
    for i in range(typical.n_gpu, typical.n):
        share = typical.freq[i] * free
        xl += share if cpu_left >= typical.cpu[i] else 0.0
        xr += share if cpu_left < typical.cpu[i] else 0.0
    return q1 + q2 + q4 + xl + xr + closed


cdef int frag_points(double before, double after) noexcept nogil:
    """Points of a change of fragmentation: a sigmoid of the milli-GPU saved, 50 = no change."""
    return <int> (100.0 / (1.0 + exp(-(before - after) / 1000.0)))


cdef int frag_growth(const Node* node, const Pod* pod, const Typical* typical, uint64_t* gpus) noexcept nogil:
    """FGD points of placing ``pod`` on ``node``, and the devices that earn them."""
    cdef int32_t[MAX_GPUS] after
    cdef int64_t cpu_left = node.cpu_left - pod.cpu
    cdef int g, same, points, best = -1
    gpus[0] = 0
    if pod.cpu == 0 and pod.mem == 0 and pod.num_gpu == 0:
        return 100
    memcpy(&after[0], node.gpu_left, node.width * sizeof(int32_t))
    if pod.num_gpu != 1 or pod.milli == FULL:
        gpus[0] = device_idle(node, pod.num_gpu)
        for g in range(node.num_gpu):
            if (gpus[0] >> g) & 1:
                after[g] -= pod.milli
        return frag_points(node.frag, frag_amount(cpu_left, &after[0], node, typical))
    for g in range(node.num_gpu):
        if node.gpu_left[g] < pod.milli:
            continue
        for same in range(g):
            if node.gpu_left[same] == node.gpu_left[g]:
                break
        else:  # an earlier device with as much left has the same score and wins the tie
            after[g] -= pod.milli
            points = frag_points(node.frag, frag_amount(cpu_left, &after[0], node, typical))
            after[g] += pod.milli
            if points > best:
                best = points
                gpus[0] = (<uint64_t> 1) << g
    return best
