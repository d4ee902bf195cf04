# What was worked out about a node's state, kept for whoever meets that state again.
from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t
from fastsim_ext.types cimport MAX_GPUS, Node, Pod

cdef enum:
    UNKNOWN = -32768         # a figure nobody has worked out yet; what does not fit 16 bits is never kept

    STRIP = 7                # marks are found by strips of 128 milli-CPU
    STRIPS = 1024            # the last one has no end

cdef inline void memo_keep(int16_t* figure, int32_t points) noexcept nogil:
    """Keep a figure, unless it is too large."""
    if UNKNOWN < points < -UNKNOWN:
        figure[0] = <int16_t> points

cdef class Memo:
    cdef readonly int words      # int32 words of a state: kind, CPU left (2), milli of each device
    cdef readonly int width      # device words
    cdef bint coarse             # whether states are told apart only as far as fragmentation does
    cdef const int64_t[::1] cpus         # CPU requests of the target workload
    cdef int64_t* marks                  # where CPU left begins to satisfy more, rising
    cdef int64_t n_marks
    cdef int64_t[STRIPS + 2] strip_start   # marks below each strip
    cdef readonly int each       # figures of one pod class
    cdef readonly int n_lanes    # pod classes
    cdef int lane_room
    cdef Pod* lanes
    cdef readonly int64_t n_states, forgotten, most_bytes
    cdef readonly int64_t generation     # counts how often numbers of states lost their meaning
    cdef int64_t state_room, mask
    cdef int32_t* keys                   # n_states rows of words
    cdef int16_t* rows                   # n_states rows of each * lane_room figures
    cdef int32_t* table                  # open addressing: state + 1, or 0
    cdef int known(self, int64_t state, int64_t place, int64_t term) except -1
    cdef int32_t state(self, int32_t kind, const Node* node) except -1 nogil
    cdef int64_t floor_cpu(self, int64_t cpu_left) noexcept nogil
    cdef int mark(self, int64_t taken) except -1 nogil
    cdef void expect(self, int32_t state) noexcept nogil
    cdef int32_t lane(self, const Pod* pod) except -2 nogil
    cdef int16_t* figures(self, int32_t state, int32_t lane) noexcept nogil
    cdef int64_t affordable(self, int64_t room, int lanes) noexcept nogil
    cdef int reserve(self, int64_t room) except -1 nogil
    cdef int widen(self, int lanes) except -1 nogil
    cdef int resize_rows(self, int64_t room, int lanes) except -1 nogil
    cdef void forget(self) noexcept nogil
    cpdef int verify(self) except -1
