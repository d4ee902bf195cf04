"""What every GPU reports now: sums over the pods on it, and temperature and energy, integrated between changes.

A pod's profile has phases; each stay has one edge in a heap, at which its next phase begins. Between two changes all is
constant on a GPU except temperature and energy, and those are integrated exactly.
"""

from libc.math cimport exp, llrint, log
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc

DEVICE_FIELDS = ("memory_mib", "kept_mib", "idle_w", "peak_w", "copy_share", "ambient_c", "resistance_k_per_w",
                 "tau_s", "util_known", "power_known")

cdef enum:  # columns of device__dx, in the order of DEVICE_FIELDS
    MEMORY, KEPT, IDLE, PEAK, COPIES, AMBIENT, RESISTANCE, TAU, UTIL_KNOWN, POWER_KNOWN

cdef double SPARE_UNIT = 2.0**40
cdef double LEAST_SPARE = 2.0**-60   # of a device that a pod at 100 % leaves over, so that logarithms stay finite


cdef class GpuReadings:
    """Feed it who comes and goes in order of time, and look at all GPUs whenever you like."""

    def __init__(self, device__u, devices, phases, double begin_s):
        cdef int32_t u
        self.gpus = len(device__u)
        self.device__u, self.device__dx = device__u, devices["fields"]
        self.util__dk, self.power__dk = devices["util_pct"], devices["power_w"]
        self.util__u, self.power__u = devices["util_pct__u"], devices["power_w__u"]
        self.temperature__u, self.energy__u = devices["temperature_c__u"], devices["energy_j__u"]
        self.at__u, self.head__u = devices["at_s__u"], devices["head__u"]
        self.free_stay = -1
        self.phases(phases)
        self.levels = <Level*> realloc(NULL, max(self.gpus, 1) * sizeof(Level))
        if self.levels == NULL:
            raise MemoryError()
        for u in range(self.gpus):
            self.levels[u].kib = self.levels[u].spare = self.levels[u].mw = 0
            self.levels[u].computing = self.levels[u].holding = self.levels[u].pods = 0
            self.head__u[u], self.at__u[u], self.energy__u[u] = -1, begin_s, 0.0
            self.settle(u)
            self.temperature__u[u] = (self.device__dx[self.device__u[u], AMBIENT]
                                      + self.device__dx[self.device__u[u], RESISTANCE]
                                      * self.device__dx[self.device__u[u], IDLE])

    def __dealloc__(self):
        free(self.stays)
        free(self.edges)
        free(self.levels)

    def phases(self, columns):
        """Take further profiles: the columns of before with more rows."""
        self.first__p, self.after_s = columns["first__p"], columns["after_s"]
        self.memory_mib, self.util_pct, self.power_w = columns["memory_mib"], columns["util_pct"], columns["power_w"]

    def feed(self, rows, int64_t first, double look_s):
        """Take rows from ``first`` on up to a look; the number of the first that comes after it.

        A look sees who left until then, and not yet who comes then.
        """
        cdef const double[::1] t = rows["t"]
        cdef const int64_t[::1] who = rows["who"]
        cdef const int32_t[::1] gpu = rows["gpu"]
        cdef const int32_t[::1] profile = rows["profile"]     # -1: the pod leaves
        cdef int64_t i = first
        with nogil:
            while i < t.shape[0]:
                if t[i] > look_s or (t[i] == look_s and profile[i] >= 0):
                    break
                self.advance(t[i])
                if profile[i] >= 0:
                    self.begin(t[i], who[i], gpu[i], profile[i])
                else:
                    self.end(t[i], who[i], gpu[i])
                i += 1
        return i

    def look(self, double t, out):
        """Readings of all GPUs at second ``t`` into the arrays of ``out``; ``who`` is a GPU's only pod, or -1."""
        cdef double[::1] memory = out["memory_used_mib"]
        cdef double[::1] util = out["util_pct"]
        cdef double[::1] copies = out["copy_pct"]
        cdef double[::1] power = out["power_w"]
        cdef double[::1] temperature = out["temperature_c"]
        cdef double[::1] energy = out["energy_j"]
        cdef int64_t[::1] who = out["who"]
        cdef int32_t u, d
        cdef double level, after
        with nogil:
            self.advance(t)
            for u in range(self.gpus):
                d = self.device__u[u]
                after = max(t - self.at__u[u], 0.0)
                level = self.device__dx[d, AMBIENT] + self.device__dx[d, RESISTANCE] * self.power__u[u]
                memory[u] = 0.0
                if self.levels[u].holding > 0:
                    memory[u] = min(self.levels[u].kib / 1024.0 + self.device__dx[d, KEPT], self.device__dx[d, MEMORY])
                util[u], power[u] = self.util__u[u], self.power__u[u]
                copies[u] = util[u] * self.device__dx[d, COPIES]
                temperature[u] = level + (self.temperature__u[u] - level) * exp(-after / self.device__dx[d, TAU])
                energy[u] = self.energy__u[u] + power[u] * after
                who[u] = self.stays[self.head__u[u]].who if self.levels[u].pods == 1 else -1

    cpdef int verify(self) except -1:
        """The sums are those of the stays; AssertionError if not."""
        cdef int32_t u, s
        cdef int64_t kib, pods
        for u in range(self.gpus):
            kib = pods = 0
            s = self.head__u[u]
            while s >= 0:
                assert self.stays[s].gpu == u, f"stay {s} of GPU {self.stays[s].gpu} is listed with GPU {u}"
                kib += llrint(self.memory_mib[self.stays[s].phase] * 1024)
                pods += 1
                s = self.stays[s].following
            assert (kib, pods) == (self.levels[u].kib, self.levels[u].pods), f"GPU {u}: sums and stays differ"
        return 0

    cdef int begin(self, double t, int64_t who, int32_t gpu, int32_t profile) except -1 nogil:
        """A pod comes to a GPU."""
        cdef int32_t s = self.free_stay
        cdef int32_t k
        cdef Stay* fresh
        if s < 0:
            fresh = <Stay*> realloc(self.stays, (2 * self.stay_room + 64) * sizeof(Stay))
            if fresh == NULL:
                with gil:
                    raise MemoryError()
            self.stays = fresh
            for k in range(self.stay_room, 2 * self.stay_room + 64):
                fresh[k].turn, fresh[k].following = 0, k + 1
            fresh[2 * self.stay_room + 63].following = -1
            s, self.stay_room = self.stay_room, 2 * self.stay_room + 64
        self.free_stay = self.stays[s].following
        self.stays[s].who, self.stays[s].start, self.stays[s].gpu, self.stays[s].profile = who, t, gpu, profile
        self.stays[s].phase = self.first__p[profile]
        self.stays[s].following = self.head__u[gpu]
        self.head__u[gpu] = s
        self.present += 1
        self.levels[gpu].pods += 1
        self.shift(gpu, t, self.stays[s].phase, 1)
        self.settle(gpu)
        return self.push(t, s)

    cdef int end(self, double t, int64_t who, int32_t gpu) except -1 nogil:
        """A pod leaves a GPU."""
        cdef int32_t s = self.head__u[gpu]
        cdef int32_t before = -1
        while s >= 0 and self.stays[s].who != who:
            before, s = s, self.stays[s].following
        if s < 0:
            with gil:
                raise ValueError(f"pod {who} is not on GPU {gpu}")
        if before < 0:
            self.head__u[gpu] = self.stays[s].following
        else:
            self.stays[before].following = self.stays[s].following
        self.shift(gpu, t, self.stays[s].phase, -1)
        self.levels[gpu].pods -= 1
        self.settle(gpu)
        self.stays[s].turn += 1
        self.stays[s].following, self.free_stay = self.free_stay, s
        self.present -= 1
        return 0

    cdef int push(self, double t, int32_t stay) except -1 nogil:
        """The edge at which the next phase of a stay begins, if there is one."""
        cdef Stay* s = &self.stays[stay]
        cdef int64_t at = self.n_edges
        cdef Edge edge
        cdef Edge* fresh
        if s.phase + 1 >= self.first__p[s.profile + 1]:
            return 0
        edge.t, edge.seq = s.start + self.after_s[s.phase + 1], self.scheduled
        edge.stay, edge.turn = stay, s.turn
        self.scheduled += 1
        if self.n_edges == self.edge_room:
            fresh = <Edge*> realloc(self.edges, (2 * self.edge_room + 64) * sizeof(Edge))
            if fresh == NULL:
                with gil:
                    raise MemoryError()
            self.edges, self.edge_room = fresh, 2 * self.edge_room + 64
        self.n_edges += 1
        while at > 0 and sooner(&edge, &self.edges[(at - 1) // 2]):
            self.edges[at] = self.edges[(at - 1) // 2]
            at = (at - 1) // 2
        self.edges[at] = edge
        return 0

    cdef void pop(self) noexcept nogil:
        """The soonest edge leaves the heap."""
        cdef int64_t at = 0
        cdef int64_t child
        cdef Edge last
        self.n_edges -= 1
        last = self.edges[self.n_edges]
        child = 1
        while child < self.n_edges:
            if child + 1 < self.n_edges and sooner(&self.edges[child + 1], &self.edges[child]):
                child += 1
            if not sooner(&self.edges[child], &last):
                break
            self.edges[at] = self.edges[child]
            at, child = child, 2 * child + 1
        self.edges[at] = last

    cdef int advance(self, double t) except -1 nogil:
        """Phases that begin until ``t``."""
        cdef Edge edge
        cdef int32_t gpu
        while self.n_edges > 0 and self.edges[0].t <= t:
            edge = self.edges[0]
            self.pop()
            if self.stays[edge.stay].turn != edge.turn:
                continue
            gpu = self.stays[edge.stay].gpu
            self.shift(gpu, edge.t, self.stays[edge.stay].phase, -1)
            self.stays[edge.stay].phase += 1
            self.shift(gpu, edge.t, self.stays[edge.stay].phase, 1)
            self.settle(gpu)
            self.push(edge.t, edge.stay)
        return 0

    cdef void shift(self, int32_t gpu, double t, int32_t phase, int sign) noexcept nogil:
        """Integrate up to ``t``, then add or take away what a pod does in a phase."""
        cdef Level* level = &self.levels[gpu]
        cdef int32_t d = self.device__u[gpu]
        cdef double after = t - self.at__u[gpu]
        cdef double warm
        if after > 0:
            warm = self.device__dx[d, AMBIENT] + self.device__dx[d, RESISTANCE] * self.power__u[gpu]
            self.energy__u[gpu] += self.power__u[gpu] * after
            self.temperature__u[gpu] = warm + (self.temperature__u[gpu] - warm) * exp(-after / self.device__dx[d, TAU])
            self.at__u[gpu] = t
        level.kib += sign * llrint(self.memory_mib[phase] * 1024)
        level.spare += sign * llrint(log(max(1 - self.util_pct[phase] / 100, LEAST_SPARE)) * SPARE_UNIT)
        level.mw += sign * llrint(self.power_w[phase] * 1000)
        level.computing += sign * (self.util_pct[phase] > 0)
        level.holding += sign * (self.memory_mib[phase] > 0)

    cdef void settle(self, int32_t gpu) noexcept nogil:
        """Utilisation and power as they follow from the sums."""
        cdef const Level* level = &self.levels[gpu]
        cdef int32_t d = self.device__u[gpu]
        cdef double idle = self.device__dx[d, IDLE]
        cdef double peak = self.device__dx[d, PEAK]
        cdef double util = 0.0
        cdef double power
        if self.device__dx[d, UTIL_KNOWN] > 0:
            util = self.util__dk[d, min(level.computing, self.util__dk.shape[1] - 1)]
        elif level.computing > 0:
            util = min(max(100 * (1 - exp(level.spare / SPARE_UNIT)), 0.0), 100.0)
        if self.device__dx[d, POWER_KNOWN] > 0:
            power = self.power__dk[d, min(level.holding, self.power__dk.shape[1] - 1)]
        else:
            power = idle + (peak - idle) * util / 100
        if level.holding > 0:
            power += level.mw / 1000.0
        self.util__u[gpu], self.power__u[gpu] = util, min(max(power, 0.0), peak)


cdef inline bint sooner(const Edge* a, const Edge* b) noexcept nogil:
    """Whether an edge comes before another one."""
    return a.t < b.t or (a.t == b.t and a.seq < b.seq)
