"""Present readings of every GPU: sums over its pods, and temperature and energy, integrated between changes.

A pod's profile has phases; a heap holds the start of the next phase of each stay. Between two changes everything on a
GPU is constant except temperature and energy, and those are integrated exactly.
"""

from libc.math cimport exp, llrint, log
from libc.stdint cimport INT64_MIN, int32_t, int64_t
from libc.stdlib cimport free, realloc

DEVICE_FIELDS = ("memory_mib", "kept_mib", "idle_w", "peak_w", "copy_share", "ambient_c", "resistance_k_per_w",
                 "tau_s", "util_known", "power_known")

cdef enum:  # columns of device__dx, in the order of DEVICE_FIELDS
    MEMORY, KEPT, IDLE, PEAK, COPIES, AMBIENT, RESISTANCE, TAU, UTIL_KNOWN, POWER_KNOWN

cdef double SPARE_UNIT = 2.0**40
cdef double LEAST_SPARE = 2.0**-60   # left by a pod at 100 %, so that logarithms are finite


cdef class GpuReadings:
    """Readings of all GPUs; takes arrivals and departures of pods in order of time."""

    def __init__(self, device__u, devices, phases, double begin_s):
        cdef int32_t u
        self.gpus = len(device__u)
        self.device__u, self.device__dx = device__u, devices["fields"]
        self.util__dk, self.power__dk = devices["util_pct"], devices["power_w"]
        self.util__u, self.power__u = devices["util_pct__u"], devices["power_w__u"]
        self.temperature__u, self.energy__u = devices["temperature_c__u"], devices["energy_j__u"]
        self.at__u, self.head__u = devices["at_s__u"], devices["head__u"]
        self.free_stay = -1
        self.use_profiles(phases)
        self.sums = <DeviceSums*> realloc(NULL, max(self.gpus, 1) * sizeof(DeviceSums))
        if self.sums == NULL:
            raise MemoryError()
        for u in range(self.gpus):
            self.sums[u].kib = self.sums[u].spare = self.sums[u].mw = 0
            self.sums[u].computing = self.sums[u].holding = self.sums[u].pods = 0
            self.head__u[u], self.at__u[u], self.energy__u[u] = -1, begin_s, 0.0
            self.update_power(u)
            self.temperature__u[u] = (self.device__dx[self.device__u[u], AMBIENT]
                                      + self.device__dx[self.device__u[u], RESISTANCE]
                                      * self.device__dx[self.device__u[u], IDLE])

    def __dealloc__(self):
        free(self.stays)
        free(self.starts)
        free(self.sums)

    def use_profiles(self, columns):
        """Replace the profiles by columns with further rows; present rows stay the same."""
        self.first__p, self.after_s = columns["first__p"], columns["after_s"]
        self.memory_mib, self.util_pct, self.power_w = columns["memory_mib"], columns["util_pct"], columns["power_w"]

    def feed(self, rows, int64_t first, double sample_s):
        """Process the rows from ``first`` on before a sample; returns the first row after it.

        A departure at the second of the sample comes before it, an arrival after it.
        """
        cdef const double[::1] t = rows["t"]
        cdef const int64_t[::1] pod_id = rows["pod_id"]
        cdef const int32_t[::1] gpu = rows["gpu"]
        cdef const int32_t[::1] profile = rows["profile"]     # -1: the pod leaves
        cdef int64_t i = first
        with nogil:
            while i < t.shape[0]:
                if t[i] > sample_s or (t[i] == sample_s and profile[i] >= 0):
                    break
                self.advance(t[i])
                if profile[i] >= 0:
                    self.begin(t[i], pod_id[i], gpu[i], profile[i])
                else:
                    self.end(t[i], pod_id[i], gpu[i])
                i += 1
        return i

    def read(self, double t, out):
        """Write readings of all GPUs at second ``t`` to arrays of ``out``.

        ``pod_id`` is a GPU's only pod, or the least integer.
        """
        cdef double[::1] memory = out["memory_used_mib"]
        cdef double[::1] util = out["util_pct"]
        cdef double[::1] copies = out["copy_pct"]
        cdef double[::1] power = out["power_w"]
        cdef double[::1] temperature = out["temperature_c"]
        cdef double[::1] energy = out["energy_j"]
        cdef int64_t[::1] pod_id = out["pod_id"]
        cdef int32_t u, d
        cdef double level, after
        with nogil:
            self.advance(t)
            for u in range(self.gpus):
                d = self.device__u[u]
                after = max(t - self.at__u[u], 0.0)
                level = self.device__dx[d, AMBIENT] + self.device__dx[d, RESISTANCE] * self.power__u[u]
                memory[u] = 0.0
                if self.sums[u].holding > 0:
                    memory[u] = min(self.sums[u].kib / 1024.0 + self.device__dx[d, KEPT], self.device__dx[d, MEMORY])
                util[u], power[u] = self.util__u[u], self.power__u[u]
                copies[u] = util[u] * self.device__dx[d, COPIES]
                temperature[u] = level + (self.temperature__u[u] - level) * exp(-after / self.device__dx[d, TAU])
                energy[u] = self.energy__u[u] + power[u] * after
                pod_id[u] = self.stays[self.head__u[u]].seq if self.sums[u].pods == 1 else INT64_MIN

    cpdef int verify(self) except -1:
        """Check that the sums equal those of the stays."""
        cdef int32_t u, s
        cdef int64_t kib, pods
        for u in range(self.gpus):
            kib = pods = 0
            s = self.head__u[u]
            while s >= 0:
                assert self.stays[s].gpu == u, f"stay {s} of GPU {self.stays[s].gpu} is listed with GPU {u}"
                kib += llrint(self.memory_mib[self.stays[s].phase] * 1024)
                pods += 1
                s = self.stays[s].next_stay
            assert (kib, pods) == (self.sums[u].kib, self.sums[u].pods), f"GPU {u}: sums and stays differ"
        return 0

    cdef int begin(self, double t, int64_t pod_id, int32_t gpu, int32_t profile) except -1 nogil:
        """A pod starts on a GPU."""
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
                fresh[k].turn, fresh[k].next_stay = 0, k + 1
            fresh[2 * self.stay_room + 63].next_stay = -1
            s, self.stay_room = self.stay_room, 2 * self.stay_room + 64
        self.free_stay = self.stays[s].next_stay
        self.stays[s].seq, self.stays[s].start, self.stays[s].gpu, self.stays[s].profile = pod_id, t, gpu, profile
        self.stays[s].phase = self.first__p[profile]
        self.stays[s].next_stay = self.head__u[gpu]
        self.head__u[gpu] = s
        self.present += 1
        self.sums[gpu].pods += 1
        self.shift(gpu, t, self.stays[s].phase, 1)
        self.update_power(gpu)
        return self.push(t, s)

    cdef int end(self, double t, int64_t pod_id, int32_t gpu) except -1 nogil:
        """A pod leaves a GPU."""
        cdef int32_t s = self.head__u[gpu]
        cdef int32_t before = -1
        while s >= 0 and self.stays[s].seq != pod_id:
            before, s = s, self.stays[s].next_stay
        if s < 0:
            with gil:
                raise ValueError(f"pod {pod_id} is not on GPU {gpu}")
        if before < 0:
            self.head__u[gpu] = self.stays[s].next_stay
        else:
            self.stays[before].next_stay = self.stays[s].next_stay
        self.shift(gpu, t, self.stays[s].phase, -1)
        self.sums[gpu].pods -= 1
        self.update_power(gpu)
        self.stays[s].turn += 1
        self.stays[s].next_stay, self.free_stay = self.free_stay, s
        self.present -= 1
        return 0

    cdef int push(self, double t, int32_t stay) except -1 nogil:
        """Schedule the start of the next phase of a stay, if there is one."""
        cdef Stay* s = &self.stays[stay]
        cdef int64_t at = self.n_starts
        cdef PhaseStart coming
        cdef PhaseStart* fresh
        if s.phase + 1 >= self.first__p[s.profile + 1]:
            return 0
        coming.t, coming.seq = s.start + self.after_s[s.phase + 1], self.scheduled
        coming.stay, coming.turn = stay, s.turn
        self.scheduled += 1
        if self.n_starts == self.start_room:
            fresh = <PhaseStart*> realloc(self.starts, (2 * self.start_room + 64) * sizeof(PhaseStart))
            if fresh == NULL:
                with gil:
                    raise MemoryError()
            self.starts, self.start_room = fresh, 2 * self.start_room + 64
        self.n_starts += 1
        while at > 0 and sooner(&coming, &self.starts[(at - 1) // 2]):
            self.starts[at] = self.starts[(at - 1) // 2]
            at = (at - 1) // 2
        self.starts[at] = coming
        return 0

    cdef void pop(self) noexcept nogil:
        """Remove the soonest start from the heap."""
        cdef int64_t at = 0
        cdef int64_t child
        cdef PhaseStart last
        self.n_starts -= 1
        last = self.starts[self.n_starts]
        child = 1
        while child < self.n_starts:
            if child + 1 < self.n_starts and sooner(&self.starts[child + 1], &self.starts[child]):
                child += 1
            if not sooner(&self.starts[child], &last):
                break
            self.starts[at] = self.starts[child]
            at, child = child, 2 * child + 1
        self.starts[at] = last

    cdef int advance(self, double t) except -1 nogil:
        """Process the phases that start until ``t``."""
        cdef PhaseStart coming
        cdef int32_t gpu
        while self.n_starts > 0 and self.starts[0].t <= t:
            coming = self.starts[0]
            self.pop()
            if self.stays[coming.stay].turn != coming.turn:
                continue
            gpu = self.stays[coming.stay].gpu
            self.shift(gpu, coming.t, self.stays[coming.stay].phase, -1)
            self.stays[coming.stay].phase += 1
            self.shift(gpu, coming.t, self.stays[coming.stay].phase, 1)
            self.update_power(gpu)
            self.push(coming.t, coming.stay)
        return 0

    cdef void shift(self, int32_t gpu, double t, int32_t phase, int sign) noexcept nogil:
        """Integrate up to ``t``, then add (``sign`` 1) or subtract (-1) one pod in a phase."""
        cdef DeviceSums* sums = &self.sums[gpu]
        cdef int32_t d = self.device__u[gpu]
        cdef double after = t - self.at__u[gpu]
        cdef double warm
        if after > 0:
            warm = self.device__dx[d, AMBIENT] + self.device__dx[d, RESISTANCE] * self.power__u[gpu]
            self.energy__u[gpu] += self.power__u[gpu] * after
            self.temperature__u[gpu] = warm + (self.temperature__u[gpu] - warm) * exp(-after / self.device__dx[d, TAU])
            self.at__u[gpu] = t
        sums.kib += sign * llrint(self.memory_mib[phase] * 1024)
        sums.spare += sign * llrint(log(max(1 - self.util_pct[phase] / 100, LEAST_SPARE)) * SPARE_UNIT)
        sums.mw += sign * llrint(self.power_w[phase] * 1000)
        sums.computing += sign * (self.util_pct[phase] > 0)
        sums.holding += sign * (self.memory_mib[phase] > 0)

    cdef void update_power(self, int32_t gpu) noexcept nogil:
        """Compute utilisation and power from the sums."""
        cdef const DeviceSums* sums = &self.sums[gpu]
        cdef int32_t d = self.device__u[gpu]
        cdef double idle = self.device__dx[d, IDLE]
        cdef double peak = self.device__dx[d, PEAK]
        cdef double util = 0.0
        cdef double power
        if self.device__dx[d, UTIL_KNOWN] > 0:
            util = self.util__dk[d, min(sums.computing, self.util__dk.shape[1] - 1)]
        elif sums.computing > 0:
            util = min(max(100 * (1 - exp(sums.spare / SPARE_UNIT)), 0.0), 100.0)
        if self.device__dx[d, POWER_KNOWN] > 0:
            power = self.power__dk[d, min(sums.holding, self.power__dk.shape[1] - 1)]
        else:
            power = idle + (peak - idle) * util / 100
        if sums.holding > 0:
            power += sums.mw / 1000.0
        self.util__u[gpu], self.power__u[gpu] = util, min(max(power, 0.0), peak)


cdef inline bint sooner(const PhaseStart* a, const PhaseStart* b) noexcept nogil:
    """Whether a start comes before another one."""
    return a.t < b.t or (a.t == b.t and a.seq < b.seq)
