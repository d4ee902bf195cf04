"""How good allocations of a cluster to a handful of jobs are: the mean of their speedups, and how well GPUs are used.

    mean = (sum over jobs (speedup * keeping * share * nodes + 0.001) ** power / jobs) ** (1 / power)
    utility = sum over jobs speedup / (GPUs of nodes that anyone uses)

``keeping`` is 1 for jobs that stay as they are. A speedup is relative to a fair share of the cluster, so each job's
contribution is about 1 if GPUs are shared fairly.
"""

cimport cython
from libc.math cimport exp, log, pow
from libc.stdint cimport int32_t

cdef double LEAST = 1e-3


@cython.cdivision(True)
cdef void fitness_of(const Judge* judge, const int32_t* state__jn, int32_t* used__n, double* mean,
                     double* utility) noexcept nogil:
    """Mean speedup and utility of one state; ``used`` is room for a number for each node."""
    cdef const int32_t* row
    cdef const int32_t* base
    cdef double speedup, scaled, total = 0.0, gained = 0.0
    cdef int j, n, gpus, spread, busy = 0
    cdef bint changed
    for n in range(judge.nodes):
        used__n[n] = 0
    for j in range(judge.jobs):
        row = state__jn + j * judge.nodes
        base = judge.base__jn + j * judge.nodes
        gpus, spread, changed = 0, 0, False
        for n in range(judge.nodes):
            gpus += row[n]
            spread += row[n] > 0
            used__n[n] |= row[n]
            changed |= row[n] != base[n]
        speedup = judge.speedup__jsk[(2 * j + (spread > 1)) * (judge.most + 1) + min(gpus, judge.most)]
        scaled = (speedup * judge.keeping__j[j] if changed else speedup) * judge.share__j[j] * judge.nodes
        gained += speedup
        total += log(max(scaled, LEAST)) if judge.power == 0 else pow(scaled + LEAST, judge.power)
    for n in range(judge.nodes):
        busy += used__n[n] > 0
    if judge.power == 0:
        mean[0] = exp(total / judge.jobs)
    else:
        mean[0] = pow(total / judge.jobs, 1 / judge.power)
    utility[0] = gained / (busy * judge.node_gpus) if busy > 0 else 0.0


def evaluated(const int32_t[:, :, ::1] state__pjn, const int32_t[:, ::1] base__jn, const double[:, :, ::1] speedup__jsk,
              const double[::1] keeping__j, const double[::1] share__j, int node_gpus, double power,
              double[::1] mean__p, double[::1] utility__p):
    """Mean speedup and utility of each state; ``share`` is the part of the cluster that one replica takes."""
    cdef Judge judge
    cdef int32_t[::1] used__n
    cdef Py_ssize_t p, states = state__pjn.shape[0]
    if states == 0 or state__pjn.shape[1] == 0 or state__pjn.shape[2] == 0:
        return
    used__n = base__jn[0].copy()
    judge.jobs, judge.nodes = <int> state__pjn.shape[1], <int> state__pjn.shape[2]
    judge.most, judge.node_gpus, judge.power = <int> speedup__jsk.shape[2] - 1, node_gpus, power
    judge.base__jn, judge.speedup__jsk = &base__jn[0, 0], &speedup__jsk[0, 0, 0]
    judge.keeping__j, judge.share__j = &keeping__j[0], &share__j[0]
    with nogil:
        for p in range(states):
            fitness_of(&judge, &state__pjn[p, 0, 0], &used__n[0], &mean__p[p], &utility__p[p])
