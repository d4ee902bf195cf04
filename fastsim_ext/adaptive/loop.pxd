# The loop of adaptive jobs: training, arrivals, and the GPUs of each job.
cimport cython
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.adaptive.training_job cimport TrainingJob
from fastsim_ext.rounds.cluster_metrics cimport ClusterMetrics


@cython.final
cdef class AdaptiveLoop:
    cdef readonly list active, ended_jobs
    cdef readonly ClusterMetrics metrics
    cdef list pending                  # jobs to come, the next one last
    cdef dict held                     # by job: (nodes, GPUs)
    cdef int32_t[::1] taken            # by GPU: whether a job holds it
    cdef int32_t[::1] base__n, used__n  # first GPU of each node and the number of all; GPUs in use of each node
    cdef readonly double[::1] busy_s   # by GPU
    cdef readonly double now_s
    cdef double round_s, interference
    cdef readonly int64_t rounds, max_active, job_rounds, quiet
    cdef bint recorded
    cdef readonly list tasks, gpus   # what ran in each round, and GPUs that were new to their jobs
    cdef int64_t first_task          # of this round
    cdef int depart(self, TrainingJob job) except -1
    cdef int interfere(self) except -1
    cdef int release(self, object job) except -1
    cdef object take(self, object nodes)
    cdef int measure(self, int64_t running) except -1
