"""Fragmentation over a target workload grouped by device request: fast sums, exact where points depend on it.

Typical pods with the same device request differ only in CPU, so their shares are summed once over
rising CPU requests, and a node's fragmentation is one product over the groups. As integers these sums
are exact. As floats they may differ in the last bits from sums in the given order, which define the
points. So points are taken from the fast sums only where those bits cannot change them, and from sums
in the given order elsewhere.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.string cimport memcpy
from fastsim_ext.scores.device cimport device_idle
from fastsim_ext.scores.frag cimport frag_amount, frag_growth, frag_points
from fastsim_ext.scores.frag_sums cimport RANKS, Sum, sums_place
from fastsim_ext.types cimport (
    FULL, MAX_GPUS, NO_ACCESS, Q1_LACK_BOTH, Q2_LACK_GPU, Q3_SATISFIED, Q4_LACK_CPU, XL_SATISFIED, XR_LACK_CPU,
    Node, Pod, Typical,
)

cdef enum:
    REACH = 5120         # milli-GPU saved or added beyond which the table of points ends
    STEP = 8
    STEPS = 1280         # 2 * REACH / STEP

cdef double TOLERANCE = 1e-6         # milli-GPU; a million times the error by the order of summation
cdef double[102] edge                # least saving that earns each number of points, or infinity
cdef uint8_t[STEPS] step_points  # points at the lower end of each step


cdef void fill_edges() noexcept:
    """Find each edge by bisection on the formula itself, then the points at every step."""
    cdef double low, high, middle
    cdef int points, i
    for points in range(1, 102):
        low, high = -1e7, 1e7
        while True:
            middle = low + (high - low) / 2
            if middle <= low or middle >= high:
                break
            if frag_points(middle, 0.0) >= points:
                high = middle
            else:
                low = middle
        edge[points] = high
    edge[0] = -1e7
    for i in range(STEPS):
        step_points[i] = frag_points(<double> (i * STEP - REACH), 0.0)


fill_edges()


cdef int grouped_rank(const Groups* groups, int64_t cpu_left) noexcept nogil:
    """How many of the distinct CPU requests ``cpu_left`` satisfies."""
    cdef int rank
    if cpu_left < 0:
        return 0
    rank = groups.strip[min(cpu_left >> STRIP, STRIPS - 1)]
    while rank < groups.n_ranks - 1 and groups.cpu[rank] <= cpu_left:
        rank += 1
    return rank


cdef inline int used_groups(const Groups* groups, int32_t most) noexcept nogil:
    """Groups that may find a device if none has more than ``most`` milli left, rounded up to a multiple of 4."""
    cdef const int32_t* fits = groups.fits__vg + <int64_t> most * groups.n
    cdef int used = groups.n
    while used > 0 and fits[used - 4] == 0:
        used -= 4
    return used


cdef inline double weighted_gain(const View* view, const int32_t* gain, int rank) noexcept nogil:
    """Sum of gain times share over the groups; four sums side by side, for speed."""
    cdef const double* share = view.groups.share__rg + <int64_t> rank * view.groups.n
    cdef double a = 0.0
    cdef double b = 0.0
    cdef double c = 0.0
    cdef double d = 0.0
    cdef int j = 0
    while j < view.used:
        a += share[j] * gain[j]
        b += share[j + 1] * gain[j + 1]
        c += share[j + 2] * gain[j + 2]
        d += share[j + 3] * gain[j + 3]
        j += 4
    return (a + b) + (c + d)


cdef inline void find_levels(View* view) noexcept nogil:
    """The distinct amounts left, in order of their first device."""
    cdef const int32_t* left = view.node.gpu_left
    cdef int g, k
    view.n_levels = 0
    for g in range(view.node.num_gpu):
        if left[g] == 0:
            continue
        for k in range(view.n_levels):
            if view.level[k] == left[g]:
                break
        else:
            view.level[view.n_levels] = left[g]
            view.device[view.n_levels] = g
            view.n_levels += 1


cdef void grouped_view(const Node* node, const Groups* groups, int32_t* room, View* view) noexcept nogil:
    """The view of a node: what every group finds there, stored in ``room``, three rows of groups.n."""
    cdef int g, j
    cdef int32_t left
    cdef int32_t free = 0
    cdef int32_t* fit = room
    cdef int32_t* small = fit + groups.n
    cdef int32_t* gain = small + groups.n
    cdef const int32_t* fits
    cdef const int32_t* smalls
    cdef const int32_t* num = groups.num
    cdef const int32_t* open = groups.open__mg + <int64_t> (node.model + 1) * groups.n
    grouped_restore(node, groups, room, 0, 0.0, view)
    for j in range(groups.n):
        fit[j] = 0
        small[j] = 0
        gain[j] = 0
    for g in range(node.num_gpu):
        left = node.gpu_left[g]
        if left == 0:
            continue
        free += left
        fits = groups.fits__vg + <int64_t> left * groups.n
        smalls = groups.small__vg + <int64_t> left * groups.n
        for j in range(view.used):
            fit[j] += fits[j]
            small[j] += smalls[j]
    for j in range(view.used):
        gain[j] = (small[j] - free) & open[j] & -<int32_t> (fit[j] >= num[j])
    view.free, view.before = free, free * groups.all + weighted_gain(view, gain, view.rank)


cdef void grouped_restore(const Node* node, const Groups* groups, int32_t* room, int32_t free, double before,
                          View* view) noexcept nogil:
    """The view of a node in a state seen before, with its stored sums; grouped_unpack restores the rows."""
    view.node, view.groups, view.free, view.before = node, groups, free, before
    view.open = groups.open__mg + <int64_t> (node.model + 1) * groups.n
    view.fit, view.small, view.gain = room, room + groups.n, room + 2 * groups.n
    view.offer_gain, view.n_offers = groups.scratch, 0
    view.rank = grouped_rank(groups, node.cpu_left)
    view.used = used_groups(groups, node.most)
    view.n_levels = -1


cdef void grouped_pack(const View* view, uint16_t* rows) noexcept nogil:
    """Store the rows of a view in 16 bits, two rows of groups.n: at most MAX_GPUS devices and 64,000 milli."""
    cdef int j
    for j in range(2 * view.groups.n):       # ``small`` stands behind ``fit``
        rows[j] = <uint16_t> view.fit[j]


cdef void grouped_unpack(View* view, const uint16_t* rows) noexcept nogil:
    """Restore the rows of a view that grouped_pack stored."""
    cdef const int32_t* num = view.groups.num
    cdef int j
    for j in range(2 * view.groups.n):
        view.fit[j] = rows[j]
    for j in range(view.groups.n):
        view.gain[j] = (view.small[j] - view.free) & view.open[j] & -<int32_t> (view.fit[j] >= num[j])


cdef void grouped_classes(const View* view, int64_t* out__k) noexcept nogil:
    """Free milli-GPU by FragClass in counts of the target workload, exactly as if summed pod by pod.

    The sums are of whole numbers below 2**53, which floats hold exactly.
    """
    cdef const Groups* groups = view.groups
    cdef int top = groups.n_ranks - 1
    cdef const double* ok = groups.count__rg + <int64_t> view.rank * groups.n
    cdef const double* every = groups.count__rg + <int64_t> top * groups.n
    cdef const int64_t* opens = groups.opens__mr + <int64_t> (view.node.model + 1) * groups.n_ranks
    cdef double served = 0.0         # pods whose devices the node has
    cdef double served_ok = 0.0      # and whose CPU
    cdef double small = 0.0          # milli on devices with less than their request
    cdef double fits
    cdef int64_t free = view.free
    cdef int64_t q1, q2, q3, q4, q2_small
    cdef int j
    for j in range(view.used):
        fits = <double> (-view.open[j] & (view.fit[j] >= groups.num[j]))
        served += every[j] * fits
        served_ok += ok[j] * fits
        small += ok[j] * fits * view.small[j]
    q3, q4, q2_small = <int64_t> served_ok, <int64_t> (served - served_ok), <int64_t> small
    q2 = opens[view.rank] - q3
    q1 = opens[top] - opens[view.rank] - q4
    out__k[Q1_LACK_BOTH] = q1 * free
    out__k[Q2_LACK_GPU] = q2 * free + q2_small
    out__k[Q3_SATISFIED] = q3 * free - q2_small
    out__k[Q4_LACK_CPU] = q4 * free
    out__k[XL_SATISFIED] = groups.cpu_only[view.rank] * free
    out__k[XR_LACK_CPU] = (groups.cpu_only[top] - groups.cpu_only[view.rank]) * free
    out__k[NO_ACCESS] = (groups.with_gpu - opens[top]) * free


cdef inline void offer_whole(View* view, int count) noexcept nogil:
    """The one way to take ``count`` whole devices: the first idle ones."""
    cdef int32_t* gain = view.offer_gain
    cdef const int32_t* num = view.groups.num
    cdef const int32_t* fit = view.fit
    cdef const int32_t* small = view.small
    cdef const int32_t* open = view.open
    cdef int32_t free = view.free - count * FULL
    cdef int j
    for j in range(view.used):
        gain[j] = (small[j] - free) & open[j] & -<int32_t> (fit[j] - count >= num[j])
    view.offer_free[0] = free
    view.offer_gpus[0] = device_idle(view.node, count)
    view.n_offers = 1


cdef inline void offer_share(View* view, int32_t taken, int k) noexcept nogil:
    """One more way to take a share of a device: from the ``k``-th distinct amount left."""
    cdef const Groups* groups = view.groups
    cdef int32_t* gain = view.offer_gain + <int64_t> view.n_offers * groups.n
    cdef const int32_t* fits_now = groups.fits__vg + <int64_t> view.level[k] * groups.n
    cdef const int32_t* fits_then = fits_now - <int64_t> taken * groups.n
    cdef const int32_t* small_now = groups.small__vg + <int64_t> view.level[k] * groups.n
    cdef const int32_t* small_then = small_now - <int64_t> taken * groups.n
    cdef const int32_t* num = groups.num
    cdef const int32_t* fit = view.fit
    cdef const int32_t* small = view.small
    cdef const int32_t* open = view.open
    cdef int32_t free = view.free - taken
    cdef int j
    for j in range(view.used):
        gain[j] = (small[j] + small_then[j] - small_now[j] - free) & open[j] & -<int32_t> (
            fit[j] + fits_then[j] - fits_now[j] >= num[j])
    view.offer_free[view.n_offers] = free
    view.offer_gpus[view.n_offers] = (<uint64_t> 1) << view.device[k]
    view.n_offers += 1


cdef void grouped_offers(View* view, int num_gpu, int milli) noexcept nogil:
    """Every distinct way to place a request that the devices can serve, in order of the device."""
    cdef int k
    view.n_offers = 0
    for k in range(CACHED):
        view.most_rank[k] = view.exact_rank[k] = -1
    if num_gpu == 0:
        memcpy(view.offer_gain, view.gain, view.used * sizeof(int32_t))
        view.offer_free[0] = view.free
        view.offer_gpus[0] = 0
        view.n_offers = 1
    elif num_gpu > 1 or milli == FULL:
        offer_whole(view, num_gpu)
    else:
        if view.n_levels < 0:
            find_levels(view)
        for k in range(view.n_levels):
            if view.level[k] >= milli:
                offer_share(view, milli, k)


cdef double grouped_saved(const View* view, int offer, int rank) noexcept nogil:
    """Fragmentation before minus after taking an offer, milli-GPU; ``rank`` is that of the CPU left afterwards."""
    cdef const Groups* groups = view.groups
    cdef double after = view.offer_free[offer] * groups.all
    return view.before - (after + weighted_gain(view, view.offer_gain + <int64_t> offer * groups.n, rank))


cdef int grouped_points(double saved) noexcept nogil:
    """Points of a saving (milli-GPU), or -1 if the order of summation might decide them."""
    cdef int points
    if not -REACH < saved < REACH - STEP:
        return -1
    points = step_points[(<int> (saved + REACH)) // STEP]
    while saved >= edge[points + 1]:
        points += 1
    if saved - edge[points] < TOLERANCE or edge[points + 1] - saved < TOLERANCE:
        return -1
    return points


cdef inline int points_below(double saved) noexcept nogil:
    """Points of a saving without regard to TOLERANCE: they never fall as it rises; beyond the table 0 or 100."""
    cdef int points
    if not -REACH < saved < REACH - STEP:
        return 100 if saved > 0 else 0
    points = step_points[(<int> (saved + REACH)) // STEP]
    while saved >= edge[points + 1]:
        points += 1
    return points


cdef inline double most_saved(View* view, int rank) noexcept nogil:
    """The largest saving of the present offers; stored, because many requests leave CPU of the same rank."""
    cdef int offer
    cdef double saved
    cdef double best = -1e9
    if view.most_rank[rank % CACHED] == rank:
        return view.most[rank % CACHED]
    for offer in range(view.n_offers):
        saved = grouped_saved(view, offer, rank)
        best = saved if saved > best else best
    view.most_rank[rank % CACHED], view.most[rank % CACHED] = rank, best
    return best


cdef int grouped_best(View* view, const Pod* pod) noexcept nogil:
    """FGD points of the best offer for ``pod``, or -1 if the order of summation might decide them."""
    cdef int rank = grouped_rank(view.groups, view.node.cpu_left - pod.cpu)
    if pod.num_gpu == 0 and pod.cpu > 0 and (rank == view.rank or view.free == 0):
        return 50   # the fragmentation is unchanged
    return grouped_points(most_saved(view, rank))


cdef int grouped_bound(View* view, const Pod* pod) noexcept nogil:
    """Upper bound of the points of pods with the devices of ``pod`` and its CPU or more."""
    if pod.cpu == 0 and pod.num_gpu == 0:
        return 100
    return points_below(most_saved(view, grouped_rank(view.groups, view.node.cpu_left - pod.cpu)) + 2 * TOLERANCE)


cdef double exact_amount(View* view, int64_t cpu_left, int rank, const Typical* typical) noexcept nogil:
    """Fragmentation with the present devices, summed in the given order; it depends on CPU by its rank only."""
    cdef Sum* sums = sums_place(view.groups.sums, view.fit, view.free, view.node.model)
    cdef int at = rank % RANKS
    if sums.rank[at] != rank + 1:
        sums.rank[at] = rank + 1
        sums.frag[at] = frag_amount(cpu_left, view.node.gpu_left, view.node, typical)
    return sums.frag[at]


cdef int exact_points(View* view, const Pod* pod, uint64_t gpus, int rank, const Typical* typical) noexcept nogil:
    """Points of taking the devices ``gpus``, summed in the given order."""
    cdef const Node* node = view.node
    cdef double before = exact_amount(view, node.cpu_left, view.rank, typical)
    cdef int32_t[MAX_GPUS] left
    cdef int g
    if gpus == 0:
        return frag_points(before, exact_amount(view, node.cpu_left - pod.cpu, rank, typical))
    memcpy(&left[0], node.gpu_left, node.width * sizeof(int32_t))
    for g in range(node.num_gpu):
        if (gpus >> g) & 1:
            left[g] -= pod.milli
    return frag_points(before, frag_amount(node.cpu_left - pod.cpu, &left[0], node, typical))


cdef int grouped_growth(View* view, const Pod* pod, const Typical* typical, uint64_t* gpus) noexcept nogil:
    """FGD points of placing ``pod`` on the node of the view, and the devices; always those of ``frag_growth``."""
    cdef Node exact
    cdef int rank = grouped_rank(view.groups, view.node.cpu_left - pod.cpu)
    gpus[0] = 0
    if (pod.num_gpu == 0 and pod.cpu == 0) or (pod.num_gpu > 1 and pod.milli != FULL):
        exact = view.node[0]
        exact.frag = exact_amount(view, exact.cpu_left, view.rank, typical)
        return frag_growth(&exact, pod, typical, gpus)
    grouped_offers(view, pod.num_gpu, pod.milli)
    return offered_points(view, pod, rank, typical, gpus)


cdef int offered_points(View* view, const Pod* pod, int rank, const Typical* typical, uint64_t* gpus) noexcept nogil:
    """The same from the offers for ``pod``; sums in the given order only where they can decide."""
    cdef double[LEVELS] saved
    cdef double highest = -1e9
    cdef int offer, points, most, best = -1
    if pod.num_gpu == 0:
        points = grouped_best(view, pod)
        return points if points >= 0 else exact_points(view, pod, 0, rank, typical)
    for offer in range(view.n_offers):
        saved[offer] = grouped_saved(view, offer, rank)
        highest = saved[offer] if saved[offer] > highest else highest
    for offer in range(view.n_offers):
        points = grouped_points(saved[offer])
        if points < 0:
            most = points_below(saved[offer] + 2 * TOLERANCE)
            if most <= best or most < min(points_below(highest - 2 * TOLERANCE), 99):
                continue
            points = exact_points(view, pod, view.offer_gpus[offer], rank, typical)
        if points > best:
            best = points
            gpus[0] = view.offer_gpus[offer]
    return best


cdef int grouped_exact(View* view, const Pod* pod, const Typical* typical) noexcept nogil:
    """FGD points of the best offer for ``pod`` by sums in the given order, where ``grouped_best`` returned -1.

    They are stored, because many requests of one family leave CPU of the same rank and then have equal points.
    """
    cdef uint64_t gpus
    cdef int rank = grouped_rank(view.groups, view.node.cpu_left - pod.cpu)
    cdef int at = rank % CACHED
    if pod.num_gpu == 0 or (pod.num_gpu > 1 and pod.milli != FULL):
        return grouped_growth(view, pod, typical, &gpus)
    if view.exact_rank[at] != rank:
        view.exact_rank[at], view.exact[at] = rank, offered_points(view, pod, rank, typical, &gpus)
    return view.exact[at]
