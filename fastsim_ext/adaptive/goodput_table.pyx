"""Normalised goodput of each configuration for each of many jobs, from their fitted step times.

The rules stand in `fastsim/policies/deciders/goodput_table.py`, which does the same for one job without this module;
rows are in single precision, as there, and every operation is in its order.
"""

cimport cython
from libc.math cimport INFINITY, isnan
from libc.stdint cimport int64_t, uint8_t
from fastsim_ext.adaptive.goodput cimport Choice, Grid, Limits, Perf, goodput_best, goodput_staged

cdef enum:
    NONE = -1
    MICRO_BATCHES = 48

cdef float LEAST = 1e-4                 # of configurations that are unknown or out of reach


@cython.final
cdef class GoodputKernel:
    """Configurations ``q`` on groups ``g``, and limits and speed ratios of applications ``a`` on these groups.

    ``low`` and ``high`` are samples a GPU takes at once, ``stages`` the GPUs of a replica, ``ratio[a, c, d]`` how many
    times faster one GPU of ``c`` is than one of ``d`` (NaN: unknown).
    """

    def __init__(self, group__q, nodes__q, gpus__q, per_node__g, low__ag, high__ag, stages__ag, ratio__agg):
        self.group__q, self.nodes__q, self.gpus__q, self.per_node__g = group__q, nodes__q, gpus__q, per_node__g
        self.low__ag, self.high__ag, self.stages__ag, self.ratio__agg = low__ag, high__ag, stages__ag, ratio__agg
        self.columns, self.groups = len(group__q), len(per_node__g)

    def rows(self, const double[:, :, ::1] perf__jgp, const uint8_t[:, ::1] known__jg, const int64_t[:, ::1] most__jg,
             const double[:, ::1] noise__jn, const int64_t[::1] app__j, const int64_t[::1] batch__j,
             const uint8_t[::1] tuned__j, float[:, ::1] row__jq):
        """Fill a row for each job; ``perf`` and ``noise`` hold the fields of these structs in ``goodput.pxd``.

        ``known`` marks the groups on which a job has run, ``most`` limits its replicas there. ``batch`` is the most
        samples of a step, and their exact number if the job is not ``tuned``.
        """
        cdef JobView job
        cdef Py_ssize_t j
        if not self.columns or not self.groups:
            return
        with nogil:
            for j in range(app__j.shape[0]):
                job.perf__g = <const Perf*> &perf__jgp[j, 0, 0]
                job.known__g, job.most__g = &known__jg[j, 0], &most__jg[j, 0]
                job.noise.sqr, job.noise.var, job.noise.init_batch = noise__jn[j, 0], noise__jn[j, 1], noise__jn[j, 2]
                job.app, job.batch, job.tuned = app__j[j], batch__j[j], tuned__j[j]
                self.fill(&job, &row__jq[j, 0])

    @cython.cdivision(True)
    cdef void fill(self, const JobView* job, float* row) noexcept nogil:
        """One row: what is measured or projected, so that the worst of it is one replica; else one replica is one."""
        cdef int teacher = NONE, g, q
        cdef int64_t stages, unit = 1
        cdef double least = INFINITY, own
        cdef float factor
        for g in range(self.groups - 1, -1, -1):
            if job.known__g[g]:
                teacher = g
        for q in range(self.columns):
            row[q] = LEAST
        for g in range(self.groups):
            if not self.fill_group(job, g, g if job.known__g[g] else teacher, row):
                continue
            own = INFINITY
            for q in range(self.columns):
                if self.group__q[q] == g and LEAST < row[q] < own:
                    own = row[q]
            if own <= least and own < INFINITY:
                least, unit = own, self.stages__ag[job.app, g]
        factor = <float> (1.0 / least) if least < INFINITY else 1.0
        for q in range(self.columns):
            g = <int> self.group__q[q]
            stages = self.stages__ag[job.app, g]
            row[q] = <float> (<float> (row[q] * factor) * <float> unit)
            if self.gpus__q[q] == stages and not self.seeded(job, g, teacher):
                row[q] = <float> stages
            if row[q] < LEAST:
                row[q] = LEAST

    cdef bint seeded(self, const JobView* job, int group, int teacher) noexcept nogil:
        """Whether something is known of a group: measured or projected, and a configuration there is allowed."""
        cdef int source = group if job.known__g[group] else teacher, q
        if source == NONE or (source != group and isnan(self.ratio__agg[job.app, group, source])):
            return False
        for q in range(self.columns):
            if self.group__q[q] == group and self.allowed(job, q):
                return True
        return False

    @cython.cdivision(True)
    cdef bint allowed(self, const JobView* job, int q) noexcept nogil:
        """Whether a job may have a configuration."""
        cdef int64_t g = self.group__q[q], stages = self.stages__ag[job.app, g]
        return self.gpus__q[q] <= job.most__g[g] * stages and self.gpus__q[q] % stages == 0

    @cython.cdivision(True)
    cdef bint fill_group(self, const JobView* job, int group, int source, float* row) noexcept nogil:
        """The goodput of a group's configurations, from what was learned of ``source``; whether there is any."""
        cdef Grid grid
        cdef int64_t nodes, per_node
        cdef int q
        cdef double choice
        if not self.seeded(job, group, source):
            return False
        grid.made = False
        for q in range(self.columns):
            if self.group__q[q] != group or not self.allowed(job, q):
                continue
            if source == group:
                choice = self.worth(job, group, self.nodes__q[q], self.gpus__q[q] // self.stages__ag[job.app, group],
                                    &grid)
            else:
                per_node = self.per_node__g[source]
                nodes = (self.gpus__q[q] * self.stages__ag[job.app, source] + per_node - 1) // per_node
                choice = self.worth(job, source, nodes, self.gpus__q[q], &grid)
                choice = choice * self.ratio__agg[job.app, group, source]
            row[q] = <float> choice
        return True

    cdef double worth(self, const JobView* job, int source, int64_t nodes, int64_t replicas, Grid* grid) noexcept nogil:
        """Goodput by what was learned of one group."""
        cdef int64_t stages = self.stages__ag[job.app, source]
        cdef Limits limits
        cdef Choice choice
        if stages > 1:
            goodput_staged(&job.perf__g[source], &job.noise, job.batch, stages, MICRO_BATCHES, nodes, replicas, &choice)
            return choice.goodput
        limits.max_batch = job.batch
        limits.low, limits.high = self.low__ag[job.app, source], self.high__ag[job.app, source]
        limits.accumulation, limits.tuned, limits.float32 = True, job.tuned, True
        goodput_best(&job.perf__g[source], &job.noise, &limits, nodes, replicas, grid, &choice)
        return choice.goodput
