"""Raw points by kernel number, and their upper bound for pods with more CPU."""

from libc.stdint cimport int64_t, uint64_t
from fastsim_ext.scores.dot cimport dot_points
from fastsim_ext.scores.frag cimport frag_growth
from fastsim_ext.scores.frag_grouped cimport View, grouped_best, grouped_bound, grouped_offers, grouped_exact
from fastsim_ext.scores.pack cimport pack_best_fit, pack_clusters, pack_gpus, pack_simon
from fastsim_ext.scores.power cimport power_points, power_saved
from fastsim_ext.types cimport (
    BEST_FIT, DOT_PRODUCT, FGD, GPU_CLUSTERING, GPU_PACKING, PWR, Node, Pod, Typical,
)


cdef int64_t points_raw(int kernel, const Node* node, const Pod* pod, const Typical* typical, int dim, int norm,
                        uint64_t* gpus) noexcept nogil:
    """Raw integer points of one kernel on one node, and the devices it chooses, or 0."""
    gpus[0] = 0
    if kernel == FGD:
        return frag_growth(node, pod, typical, gpus)
    if kernel == PWR:
        return power_saved(node, pod, gpus)
    if kernel == DOT_PRODUCT:
        return dot_points(node, pod, dim, norm, gpus)
    if kernel == BEST_FIT:
        return pack_best_fit(node, pod)
    if kernel == GPU_PACKING:
        return pack_gpus(node, pod)
    if kernel == GPU_CLUSTERING:
        return pack_clusters(node, pod)
    return pack_simon(node, pod)


cdef int64_t points_alone(int kernel, const Node* node, const Pod* pod, const Typical* typical, int dim,
                          int norm) noexcept nogil:
    """The same for a node that can host the pod, without the devices."""
    cdef uint64_t gpus
    return power_points(node, pod) if kernel == PWR else points_raw(kernel, node, pod, typical, dim, norm, &gpus)


cdef int64_t points_viewed(int kernel, const Pod* pod, const Typical* typical, int dim, int norm,
                           View* view) noexcept nogil:
    """Raw points on the node of a view that holds the offers for the pod's devices."""
    cdef uint64_t gpus
    cdef int64_t points
    if kernel != FGD:
        return points_raw(kernel, view.node, pod, typical, dim, norm, &gpus)
    points = grouped_best(view, pod)
    return points if points >= 0 else grouped_exact(view, pod, typical)


cdef bint points_bounded(int kernel) noexcept nogil:
    """Whether ``points_bound`` has a bound for the kernel."""
    return kernel in (FGD, PWR, BEST_FIT, GPU_PACKING, GPU_CLUSTERING)


cdef int64_t points_bound(int kernel, const Pod* pod, int64_t most_cpu, View* view) noexcept nogil:
    """Upper bound of the points of pods like ``pod`` with CPU from its own up to ``most_cpu`` (milli-CPU)."""
    cdef Pod most
    cdef uint64_t gpus
    if kernel == FGD:            # more CPU taken leaves more requests unsatisfied
        return grouped_bound(view, pod)
    if kernel == BEST_FIT:       # more CPU taken leaves less, which earns more points
        most = pod[0]
        most.cpu = most_cpu
        return pack_best_fit(view.node, &most)
    # Power never falls as more cores are used, and the packing scores do not depend on CPU.
    return points_raw(kernel, view.node, pod, NULL, 0, 0, &gpus)


cdef int points_frag(const Pod* pod, bint bound, const Typical* typical, View* view) noexcept nogil:
    """Raw points of fragmentation, or their bound; adds the offers for the pod's devices to the view if missing."""
    cdef int points
    if view.n_offers == 0:
        grouped_offers(view, pod.num_gpu, pod.milli)
    if bound:
        return grouped_bound(view, pod)
    points = grouped_best(view, pod)
    return points if points >= 0 else grouped_exact(view, pod, typical)
