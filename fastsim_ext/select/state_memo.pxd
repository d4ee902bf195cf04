# Figures computed for a node state, stored by state and pod class for reuse.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint64_t
from fastsim_ext.types cimport Node, Pod
cdef enum:
    UNKNOWN = -32768         # not computed yet; figures that do not fit their bits are never stored
    SMALL_UNKNOWN = 127      # the same in a row of bytes: above all others, as in ByteThresholds
    STRIP = 7, STRIPS = 1024  # marks are found by strips of 128 milli-CPU; the last one has no end
    WORDS = 18               # most words of a state, 2 + MAX_GPUS // 4

cdef inline int32_t memo_figure(const char* row, int64_t at, bint small) noexcept nogil:
    """A figure of a row, or UNKNOWN."""
    cdef int32_t figure = (<const int8_t*> row)[at] if small else (<const int16_t*> row)[at]
    return UNKNOWN if small and figure == SMALL_UNKNOWN else figure

cdef inline void memo_keep(char* row, int64_t at, bint small, int32_t points) noexcept nogil:
    """Store a figure, unless it is too large."""
    if small and -SMALL_UNKNOWN < points < SMALL_UNKNOWN:
        (<int8_t*> row)[at] = <int8_t> points
    elif not small and UNKNOWN < points < -UNKNOWN:
        (<int16_t*> row)[at] = <int16_t> points

cdef struct Key:         # a state before it has a number
    uint64_t[WORDS] words                # kind, CPU left, milli of four devices each
    uint64_t mix         # their hash: place in the table, and upper half as a tag

cdef bint memo_spread(const char* row, bint small, const int32_t* at__c, const int32_t* skip__c, int first, int last,
                      int32_t* out__c) noexcept nogil

cdef class Memo:
    cdef readonly int words, width       # 64-bit words of a state; devices
    cdef bint coarse             # whether states that fragmentation cannot distinguish are one; figures are bytes
    cdef const int64_t[::1] cpus         # CPU requests of the target workload
    cdef int64_t* marks                  # CPU amounts at which further requests are satisfied, rising
    cdef int64_t[STRIPS + 2] strip_start   # marks below each strip
    cdef readonly int terms_each, n_lanes, lane_room     # figures of one pod class; pod classes; room for them
    cdef Pod* lanes
    cdef readonly int64_t n_states, forgotten, most_bytes
    cdef readonly int64_t generation     # counts how often state numbers were reassigned
    cdef int64_t n_marks, state_room, mask
    cdef uint64_t* keys                  # n_states rows of words
    cdef void* memory                    # the allocation of the rows, which begin at a cache line
    cdef char* rows                      # n_states rows of terms_each * lane_room figures, two bytes each unless coarse
    cdef uint64_t* table                 # open addressing: upper half of the key's hash, and state + 1; or 0
    cdef int check_known(self, int64_t state, int64_t place, int64_t term) except -1
    cdef void describe(self, const Node* node, Key* key) noexcept nogil
    cdef void prefetch(self, const Key* key) noexcept nogil
    cdef int32_t state(self, const Key* key) except -1 nogil
    cdef int64_t floor_cpu(self, int64_t cpu_left) noexcept nogil
    cdef int add_marks(self, int64_t taken) except -1 nogil
    cdef int32_t lane(self, const Pod* pod) except -2 nogil
    cdef int64_t row_bytes(self, int lanes) noexcept nogil
    cdef char* row(self, int64_t state) noexcept nogil
    cdef void blank(self, int64_t state, int64_t first, int64_t last) noexcept nogil
    cdef int64_t affordable(self, int64_t room, int lanes) noexcept nogil
    cdef int reserve(self, int64_t room) except -1 nogil
    cdef int widen(self, int lanes) except -1 nogil
    cdef int resize_rows(self, int64_t room, int lanes) except -1 nogil
    cdef int reorder_lanes(self, const int32_t* order__l, int count) except -1 nogil
    cdef void clear(self) noexcept nogil
    cpdef int verify(self) except -1
