"""Lower bounds of the earliest time at which each node can host a kind of pod.

A kind is a lower bound of its pods' requests: amounts are rounded down, memory and constraints left out. During a walk
along the line reservations only take room, so a bound from earlier in the walk may be too early, but never too late.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy
from fastsim_ext.online.free_forecast cimport CPU, GPU, MEM, PODS, FreeForecast, NodeForecast
from fastsim_ext.types cimport FULL, Pod

cdef enum:
    STEP = 250           # milli-GPU to which a share of a device is rounded down

# A gap counts as longer by this part of the time at which it ends: far more than sums of times are off by.
cdef double SLACK = 1e-9


cdef inline int64_t rounded(int64_t amount) noexcept nogil:
    """The largest power of eight that is not above an amount."""
    cdef int64_t power = 1
    while 8 * power <= amount:
        power *= 8
    return power if amount > 0 else 0


cdef inline bint equal_requests(const Pod* a, const Pod* b) noexcept nogil:
    return (a.cpu == b.cpu and a.mem == b.mem and a.num_gpu == b.num_gpu and a.milli == b.milli
            and a.models == b.models)


cdef class EarliestFit:
    """For kinds of pods and every node: bounds that are never too late."""

    def __init__(self, FreeForecast forecast):
        self.forecast = forecast

    def __dealloc__(self):
        cdef int k
        for k in range(self.n_kinds):
            free(self.kinds[k].bare)
            free(self.kinds[k].booked)
        free(self.kind_of)

    cdef int renew(self, double now) noexcept nogil:
        """Begin a walk without reservations: compute bounds anew of nodes that have changed."""
        cdef int k, n
        cdef Kind* kind
        self.walk += 1
        for k in range(self.n_kinds):
            kind = &self.kinds[k]
            for n in range(self.forecast.nodes):
                if kind.bare[n].version != self.forecast.revisions[n]:
                    self.update_bound(kind, n, &self.forecast.bare[n], False, &kind.bare[n])
                    kind.bare[n].version = self.forecast.revisions[n]
        return 0

    cdef int kind(self, int cls) except -2 nogil:
        """The number of a class's kind, or -1 if there are too many."""
        cdef const Pod* pod = &self.forecast.work.classes[cls]
        cdef Pod least
        cdef int k
        cdef int32_t* grown
        if cls < self.class_room and self.kind_of[cls] != 0:
            return self.kind_of[cls] - 1
        if cls >= self.class_room:
            grown = <int32_t*> realloc(self.kind_of, (2 * cls + 64) * sizeof(int32_t))
            if grown == NULL:
                with gil:
                    raise MemoryError()
            for k in range(self.class_room, 2 * cls + 64):
                grown[k] = 0
            self.kind_of, self.class_room = grown, 2 * cls + 64
        least.cpu, least.mem, least.num_gpu = rounded(pod.cpu), 0, pod.num_gpu
        least.milli = pod.milli if pod.milli == FULL else pod.milli // STEP * STEP
        least.models = pod.models
        for k in range(self.n_kinds):
            if equal_requests(&self.kinds[k].least, &least):
                self.kind_of[cls] = k + 1
                return k
        if self.n_kinds == MAX_KINDS:
            return -1
        self.add_kind(&least)
        self.kind_of[cls] = self.n_kinds
        return self.n_kinds - 1

    cdef int add_kind(self, const Pod* least) except -1 nogil:
        """A new kind; its bounds are the present until they are computed."""
        cdef Kind* kind = &self.kinds[self.n_kinds]
        cdef int64_t nodes = max(self.forecast.nodes, 1)
        cdef int n
        kind.least = least[0]
        kind.walk = -1
        kind.bare = <Bound*> calloc(nodes, sizeof(Bound))
        kind.booked = <Bound*> calloc(nodes, sizeof(Bound))
        if kind.bare == NULL or kind.booked == NULL:
            free(kind.bare)
            free(kind.booked)
            with gil:
                raise MemoryError()
        for n in range(self.forecast.nodes):
            kind.bare[n].first = kind.bare[n].last = -INFINITY
            kind.bare[n].version = -1
        self.n_kinds += 1
        return 0

    cdef int bounds(self, int cls, Bound** out) except -1 nogil:
        """The bounds of a class by node, or NULL if it has none."""
        cdef int which = self.kind(cls)
        cdef Kind* kind
        out[0] = NULL
        if which < 0:
            return 0
        kind = &self.kinds[which]
        if kind.walk != self.walk:
            memcpy(kind.booked, kind.bare, self.forecast.nodes * sizeof(Bound))
            kind.walk = self.walk
            for which in range(self.forecast.nodes):
                kind.booked[which].version = -1
        out[0] = kind.booked
        return 0

    cdef void sharpen(self, int cls, Bound* bound, int n) noexcept nogil:
        """Compute the bound of a class on node ``n`` from the present forecast, unless that is done."""
        if bound.version != self.forecast.version[n]:
            self.update_bound(&self.kinds[self.kind_of[cls] - 1], n, &self.forecast.booked[n], True, bound)
            bound.version = self.forecast.version[n]

    cdef void update_bound(self, const Kind* kind, int n, const NodeForecast* of, bint later,
                           Bound* out) noexcept nogil:
        """Bound of a node for the least request of a kind; ``later``: its first time is not before the present one."""
        cdef const Pod* pod = &kind.least
        cdef const int64_t* row
        cdef double since = INFINITY
        cdef int32_t k = 0
        cdef int g, serving
        cdef int devices = self.forecast.constraints.nodes.num_gpu[n]
        cdef int model = self.forecast.constraints.nodes.model[n]
        cdef bint room
        while later and k + 1 < of.count and of.t[k + 1] < out.first:    # a state of no length counts, too
            k += 1
        out.first, out.last, out.gap = INFINITY, INFINITY, 0.0
        if not self.forecast.constraints.nodes.present[n] or devices < pod.num_gpu:
            return
        if pod.models != 0 and pod.num_gpu > 0 and (model < 0 or not (pod.models >> model) & 1):
            return
        for k in range(k, of.count):
            row = &of.free[<int64_t> k * self.forecast.columns]
            room = row[CPU] >= pod.cpu and row[MEM] >= pod.mem and row[PODS] >= 1
            if room and pod.num_gpu > 0:
                serving = 0
                for g in range(devices):
                    serving += row[GPU + g] >= pod.milli
                room = serving >= pod.num_gpu
            if room and since == INFINITY:
                since = of.t[k]
                out.first = min(out.first, since)
            elif not room and since < INFINITY:
                out.gap = max(out.gap, of.t[k] - since + SLACK * (1.0 + abs(of.t[k])))
                since = INFINITY
        out.last = since
