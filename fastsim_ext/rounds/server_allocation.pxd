# The servers of one round: what they have left, and the GPUs and shares of every running job.
cimport cython
from libc.stdint cimport int32_t, uint64_t
from fastsim_ext.rounds.node_presence cimport NodePresence
from fastsim_ext.rounds.ordered_jobs cimport RESOURCES, OrderedJob

cdef inline bint enough(double there, double wanted) noexcept nogil:
    """Whether so much is there; parts of servers are quotients, so sums of them may miss the last bits."""
    return there >= wanted - wanted * 1e-12


cdef struct Server:
    double[RESOURCES] cap, left, fair    # fair: for each of its GPUs
    uint64_t free                        # its free GPUs as bits
    int32_t n_free, num_gpu, first       # first: number of its first GPU
    int32_t n_parts                      # that have GPUs, listed

cdef struct ServerPart:        # a job on one server
    double[RESOURCES] share
    uint64_t gpus
    int32_t row, server, num_gpu, next   # next: the job's next seat, or -1


@cython.final
cdef class ServerAllocation:
    cdef Server* servers
    cdef ServerPart* parts
    cdef int32_t* listed                 # width for each server: its seats in the order in which they were taken
    cdef ServerPart* picks                     # a proposal
    cdef int32_t* base                   # first server of each GPU model, and the number of all at the end
    cdef int32_t* n_free                 # by GPU model
    cdef int32_t* server_of              # by GPU
    cdef NodePresence presence           # None: all servers are there all the time
    cdef int32_t n, room, n_picks, width, models
    cdef readonly int32_t count, gpus    # of all servers
    cdef readonly int32_t present, present_gpus    # of those that are there
    cdef void clear(self) noexcept nogil
    cdef bint is_absent(self, const Server* server) noexcept nogil
    cdef int reserve(self, int32_t jobs) except -1 nogil
    cdef bint scan(self, int32_t model, int32_t num_gpu, const double* each) noexcept nogil
    cdef bint consolidated(self, int32_t model, int32_t num_gpu, const double* need) noexcept nogil
    cdef bint fullest(self, int32_t model, int32_t num_gpu, const double* each) noexcept nogil
    cdef void take_again(self, const int32_t* gpus, int32_t num_gpu) noexcept nogil
    cdef bint holds(self, int32_t num_gpu, const double* need) noexcept nogil
    cdef bint propose(self, int32_t model, int32_t num_gpu, const double* need, bint packed) noexcept nogil
    cdef int32_t fitting(self, const Server* server, const double* each, int32_t most) noexcept nogil
    cdef void pick(self, int32_t server, uint64_t gpus, int32_t num_gpu) noexcept nogil
    cdef void commit(self, OrderedJob* entry, int32_t row, int32_t model, int32_t num_gpu,
                     const double* need) noexcept nogil
    cdef void reshare(self, OrderedJob* entry, int32_t num_gpu, const double* need) noexcept nogil
    cdef bint room_to_reshare(self, const OrderedJob* entry, int32_t num_gpu, const double* need) noexcept nogil
    cdef int32_t room_for(self, int32_t num_gpu, const double* need) noexcept nogil
    cpdef int verify(self) except -1
