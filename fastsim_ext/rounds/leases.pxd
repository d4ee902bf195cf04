# The GPUs of each task in a round, and whether it keeps those of the last round.
cimport cython
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.rounds.node_presence cimport NodePresence

cdef struct Task:        # one candidate in one round
    int64_t id, mate_id  # jobs; mate_id = -1: one by itself
    int32_t row, mate    # their rows when the round is planned, mate = -1: none
    int32_t pair       # row of the pair, or -1
    int32_t model, num_gpu
    int32_t before       # the same candidate among the last round's tasks, or -1
    int64_t held         # where its GPUs begin in the list of GPUs held
    int32_t kept         # it has the very GPUs of the last round
    int32_t alive        # a member is still active
    double steps, mate_steps, finish_s
    double wasted, price  # GPU seconds of restart delays; $/h of one of its GPUs when the round began
    double priority, deficit


@cython.final
cdef class Leases:
    cdef Task* tasks
    cdef Task* last
    cdef int32_t* gpu                  # GPUs held, task by task
    cdef int32_t* last_gpu
    cdef int64_t* stamp                # by GPU: the round that gave it away
    cdef double* busy_s                # by GPU
    cdef int32_t* present              # by model: GPUs that are there
    cdef int32_t* base                 # first GPU of each model, and the number of all at the end
    cdef readonly int32_t n, n_last, gpus, width
    cdef int32_t n_held, room          # room: for tasks
    cdef int64_t turn
    cdef NodePresence presence         # None: all nodes are there all the time
    cdef readonly int64_t extensions, opportunities
    cdef int reserve(self, int32_t tasks) except -1 nogil
    cdef void begin(self) noexcept nogil
    cdef void count_present(self) noexcept nogil
    cdef bint is_lost(self, const Task* task) noexcept nogil
    cdef void place(self) noexcept nogil
    cdef void place_model(self, int32_t model) noexcept nogil
    cdef bint take_again(self, Task* task) noexcept nogil
    cdef int32_t take(self, Task* task, int32_t position) noexcept nogil
    cdef void count(self) noexcept nogil
    cpdef int verify(self) except -1
