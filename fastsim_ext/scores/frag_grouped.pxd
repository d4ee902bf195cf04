# Fragmentation over a target workload grouped by device request: fast sums, exact where points depend on it.
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t
from fastsim_ext.scores.frag_sums cimport Sums
from fastsim_ext.types cimport Node, Pod, Typical

cdef enum:
    LEVELS = 64                # most distinct amounts left on the devices of one node
    CACHED = 8                 # savings of the present offers that are stored, by CPU rank
    STRIP = 7, STRIPS = 1024   # CPU ranks are found by strips of 128 milli-CPU; the last one has no end

cdef struct Groups:            # the target workload by device request; _rg: CPU rank by group, sums over lower ranks
    int n, n_ranks             # groups, padded to a multiple of 4, rising in milli; CPU ranks, one more than requests
    const int64_t* cpu         # the distinct CPU requests, rising
    const int32_t* strip       # by strip of CPU: those that its lower end satisfies
    const int32_t* fits__vg    # by amount left on a device: 1 if it fits the request of group g, else 0
    const int32_t* small__vg   # by amount left on a device: the amount if it is less than that, else 0
    const int32_t* num         # devices that a group requests
    const int32_t* open__mg    # -1 if group g may use model m - 1 (row 0: no model), else 0
    const double* share__rg    # share of the workload
    const double* count__rg    # the same as an exact count
    const int64_t* opens__mr   # count of all groups that may use model m - 1
    int64_t with_gpu           # count of all groups
    const int64_t* cpu_only    # by rank: count of pods without devices
    double all                 # sum of all shares
    int32_t* scratch           # LEVELS rows of n
    const Sums* sums           # sums in the given order, by fit and small of a view

cdef struct View:              # one node seen by the groups
    const Node* node
    const Groups* groups
    int rank                   # CPU rank of what is left
    int used                   # groups from this one on find no device; a multiple of 4
    int32_t free               # milli left on all devices
    const int32_t* open        # the row of open__mg for the node's model
    int32_t* fit               # by group: devices with at least its milli left
    int32_t* small             # by group: milli on devices with less than that; stands behind ``fit``
    int32_t* gain              # by group: small - free where the node can serve the group, else 0
    double before              # fragmentation of the node, milli-GPU, not summed in the given order
    int n_levels               # distinct amounts left, above 0; -1: not computed yet
    int32_t[LEVELS] level, device      # the amount, and the first device with it
    int n_offers               # ways to place a request
    int32_t* offer_gain        # gain after each of them: n_offers rows of n
    int32_t[LEVELS] offer_free
    uint64_t[LEVELS] offer_gpus
    double[CACHED] most        # the largest saving by these offers, by CPU rank modulo CACHED
    int[CACHED] exact, most_rank, exact_rank           # points by sums in the given order; whose rank each is, or -1
cdef int grouped_rank(const Groups* groups, int64_t cpu_left) noexcept nogil
cdef void grouped_view(const Node* node, const Groups* groups, int32_t* room, View* view) noexcept nogil
cdef void grouped_restore(const Node* node, const Groups* groups, int32_t* room, int32_t free, double before,
                          View* view) noexcept nogil
cdef void grouped_pack(const View* view, uint16_t* rows) noexcept nogil
cdef void grouped_unpack(View* view, const uint16_t* rows) noexcept nogil
cdef void grouped_classes(const View* view, int64_t* out__k) noexcept nogil
cdef void grouped_offers(View* view, int num_gpu, int milli) noexcept nogil
cdef double grouped_saved(const View* view, int offer, int rank) noexcept nogil
cdef int grouped_best(View* view, const Pod* pod) noexcept nogil
cdef int grouped_exact(View* view, const Pod* pod, const Typical* typical) noexcept nogil
cdef int grouped_bound(View* view, const Pod* pod) noexcept nogil
cdef int grouped_growth(View* view, const Pod* pod, const Typical* typical, uint64_t* gpus) noexcept nogil
