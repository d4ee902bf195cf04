"""What jobs have measured, as a tree: every new measurement leads from one lesson to the next.

Jobs of one application measure the same things in the same order, so few lessons are ever fitted. Lesson 0 is that of
a job that has measured nothing.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from fastsim_ext.memory cimport memory_grown


@cython.final
cdef class LearnedPerformance:
    """The tree; ``fit`` makes seven parameters from measurements (nodes, replicas, samples, turn and step seconds)."""

    def __cinit__(self, fit):
        self.fit, self.known = fit, {}
        self.room = 64
        self.rows = <Measurements*> memory_grown(NULL, self.room, sizeof(Measurements))
        self.rows[0].parent, self.rows[0].most_replicas = 0, 0
        self.n = 1

    def __dealloc__(self):
        free(self.rows)

    cdef bint has(self, int32_t lesson, int64_t nodes, int64_t replicas, int64_t atomic) noexcept:
        """Whether this configuration was measured already."""
        cdef const Measurements* at
        while lesson:
            at = &self.rows[lesson]
            if at.atomic == atomic and at.replicas == replicas and at.nodes == nodes:
                return True
            lesson = at.parent
        return False

    cdef int32_t after(self, int32_t lesson, int64_t nodes, int64_t replicas, int64_t atomic, double turn_s,
                       double step_s) except -1:
        """The lesson after one more measurement."""
        key = (lesson, nodes, replicas, atomic, turn_s, step_s)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self.grown(lesson, nodes, replicas, atomic, turn_s, step_s, True)
        return found

    cdef int32_t grown(self, int32_t lesson, int64_t nodes, int64_t replicas, int64_t atomic, double turn_s,
                       double step_s, bint fitted) except -1:
        cdef Measurements* new
        if self.n == self.room:
            self.rows = <Measurements*> memory_grown(self.rows, 2 * self.room, sizeof(Measurements))
            self.room *= 2
        new = &self.rows[self.n]
        new.parent, new.nodes, new.replicas, new.atomic = lesson, nodes, replicas, atomic
        new.turn_s, new.step_s = turn_s, step_s
        new.most_replicas = max(self.rows[lesson].most_replicas, <int32_t> replicas)
        if fitted:
            perf = self.fit(self.measurements(self.n))
            new.perf = Perf(perf[0], perf[1], perf[2], perf[3], perf[4], perf[5], perf[6])
        self.n += 1
        return self.n - 1

    def taught(self, measured):
        """The lesson of many measurements at once, all of them before any job trained; 0 without any."""
        cdef int32_t lesson = 0, last = len(measured) - 1, at
        for at, (nodes, replicas, atomic, turn_s, step_s) in enumerate(measured):
            lesson = self.grown(lesson, nodes, replicas, atomic, turn_s, step_s, at == last)
        return lesson

    def in_turn(self, measured):
        """The lesson of many measurements, each fitted as if a job had come to it by training; 0 without any."""
        cdef int32_t lesson = 0
        for nodes, replicas, atomic, turn_s, step_s in measured:
            lesson = self.after(lesson, nodes, replicas, atomic, turn_s, step_s)
        return lesson

    def measurements(self, int32_t lesson):
        """All measurements of a lesson, first one first."""
        cdef const Measurements* at
        found = []
        while lesson:
            at = &self.rows[lesson]
            found.append((at.nodes, at.replicas, at.atomic, at.turn_s, at.step_s))
            lesson = at.parent
        return found[::-1]

    def learned(self, int32_t lesson):
        """The parameters of a lesson, and the most replicas it has seen."""
        cdef const Perf* p = &self.rows[lesson].perf
        perf = (p.alpha_c, p.beta_c, p.alpha_n, p.beta_n, p.alpha_r, p.beta_r, p.gamma)
        return perf, self.rows[lesson].most_replicas
