"""Fitness of allocations of a cluster to jobs: mean speedup and utility.

    mean = (sum over jobs (speedup * share * nodes * keeping + 0.001) ** power / jobs) ** (1 / power)
    utility = sum over jobs speedup / (GPUs of nodes in use)

``keeping`` is 1 for jobs that stay as they are. A speedup is relative to a fair share of the cluster, so each job's
contribution is about 1 if GPUs are shared fairly. Sums run as numpy's do, and a power of -1 is a division: the search
compares values that often differ in their last bit only.
"""

cimport cython
from libc.math cimport exp, log, pow
from libc.stdint cimport int8_t, int32_t
from libc.stdlib cimport free, malloc

cdef double LEAST = 1e-3


cdef double fitness_sum(const double* value, int count) noexcept nogil:
    """The sum in numpy's order: eight partial sums, and halves of what is longer than 128."""
    cdef double[8] part
    cdef double total = 0.0
    cdef int i, half
    if count < 8:
        for i in range(count):
            total += value[i]
        return total
    if count > 128:
        half = count // 2
        half -= half % 8
        return fitness_sum(value, half) + fitness_sum(value + half, count - half)
    for i in range(8):
        part[i] = value[i]
    for i in range(8, count - count % 8):
        part[i % 8] += value[i]
    total = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]))
    for i in range(count - count % 8, count):
        total += value[i]
    return total


@cython.cdivision(True)
cdef inline double powered(double value, double power) noexcept nogil:
    return 1 / value if power == -1 else pow(value, power)


@cython.cdivision(True)
cdef void fitness_of(const FitnessInputs* inputs, const int8_t* state__jn, FitnessRoom* room, double* mean,
                     double* utility) noexcept nogil:
    """Mean speedup and utility of one state."""
    cdef const int8_t* row
    cdef const int8_t* base
    cdef int8_t* used__n = room.used__n
    cdef double speedup, scaled, total
    cdef int j, n, gpus, spread, busy = 0
    cdef int8_t changed
    for n in range(inputs.nodes):
        room.used__n[n] = 0
    for j in range(inputs.jobs):
        row = state__jn + j * inputs.nodes
        base = inputs.base__jn + j * inputs.nodes
        gpus, spread, changed = 0, 0, 0
        for n in range(inputs.nodes):
            gpus += row[n]
            spread += row[n] > 0
            used__n[n] |= row[n]
            changed |= row[n] ^ base[n]
        speedup = inputs.speedup__jsk[(2 * j + (spread > 1)) * (inputs.most + 1) + min(gpus, inputs.most)]
        scaled = speedup * inputs.share__j[j] * inputs.nodes
        if changed:
            scaled *= inputs.keeping__j[j]
        room.term__j[j] = log(max(scaled, LEAST)) if inputs.power == 0 else powered(scaled + LEAST, inputs.power)
        room.gpus__j[j], room.each__j[j] = gpus, speedup / gpus if gpus else 0.0
    for n in range(inputs.nodes):
        busy += room.used__n[n] > 0
    total = fitness_sum(room.term__j, inputs.jobs) / inputs.jobs
    mean[0] = exp(total) if inputs.power == 0 else powered(total, 1 / inputs.power)
    for j in range(inputs.jobs):
        room.term__j[j] = room.each__j[j] * (room.gpus__j[j] / <double> (busy * inputs.node_gpus)) if busy else 0.0
    utility[0] = fitness_sum(room.term__j, inputs.jobs)


cdef int fitness_reserve(FitnessRoom* room, int jobs, int nodes) except -1 nogil:
    """Make room for states of this size; ``fitness_free`` releases it."""
    room.used__n = <int8_t*> malloc(nodes)
    room.gpus__j = <int32_t*> malloc(jobs * sizeof(int32_t))
    room.term__j = <double*> malloc(2 * jobs * sizeof(double))
    if room.used__n == NULL or room.gpus__j == NULL or room.term__j == NULL:
        with gil:
            raise MemoryError
    room.each__j = room.term__j + jobs
    return 0


cdef void fitness_free(FitnessRoom* room) noexcept nogil:
    """Release the room."""
    free(room.used__n)
    free(room.gpus__j)
    free(room.term__j)


def evaluated(const int8_t[:, :, ::1] state__pjn, const int8_t[:, ::1] base__jn, const double[:, :, ::1] speedup__jsk,
              const double[::1] keeping__j, const double[::1] share__j, int node_gpus, double power,
              double[::1] mean__p, double[::1] utility__p):
    """Mean speedup and utility of each state; ``share`` is the part of the cluster that one replica takes."""
    cdef FitnessInputs inputs
    cdef FitnessRoom room
    cdef Py_ssize_t p, states = state__pjn.shape[0]
    if states == 0 or state__pjn.shape[1] == 0 or state__pjn.shape[2] == 0:
        return
    fitness_reserve(&room, <int> state__pjn.shape[1], <int> state__pjn.shape[2])
    inputs.jobs, inputs.nodes = <int> state__pjn.shape[1], <int> state__pjn.shape[2]
    inputs.most, inputs.node_gpus, inputs.power = <int> speedup__jsk.shape[2] - 1, node_gpus, power
    inputs.base__jn, inputs.speedup__jsk = &base__jn[0, 0], &speedup__jsk[0, 0, 0]
    inputs.keeping__j, inputs.share__j = &keeping__j[0], &share__j[0]
    with nogil:
        for p in range(states):
            fitness_of(&inputs, &state__pjn[p, 0, 0], &room, &mean__p[p], &utility__p[p])
        fitness_free(&room)
