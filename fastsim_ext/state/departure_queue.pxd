# The order of events and the queue of departures.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.state.pod_table cimport Slot

cdef enum:  # EventKind: order at equal time; the key of the one total order is (time, kind, sequence)
    NODE, DEPARTURE, RETRY, SAMPLE, DESCHEDULE, ARRIVAL, END

cdef enum:
    CHUNK = 32           # departures of a bucket that are adjacent

cdef struct Departure:
    double t             # seconds
    int64_t seq          # order of scheduling
    int32_t slot         # of the pod
    int32_t turn         # the slot's turn when this was scheduled; an older turn is void

cdef struct Chunk:
    Departure[CHUNK] items
    int32_t after        # the next chunk of the same bucket, or the next free one, or -1

cdef struct Bucket:      # departures of a short interval, unsorted
    int32_t first        # its latest chunk, the only one that may not be full, or -1
    int32_t count

cdef class DepartureQueue:
    cdef Departure* items                # a heap of the nearest departures
    cdef Departure* beyond               # those after all buckets, unsorted
    cdef Bucket* buckets
    cdef Chunk* chunks
    cdef readonly int64_t size           # all departures
    cdef readonly int64_t n_items, n_beyond, n_buckets       # n_buckets: 0 while there are few departures
    cdef int64_t room, beyond_room, chunk_room, n_chunks, scheduled
    cdef int64_t heap_limit, rebuild_size  # most departures without buckets; and with the present ones
    cdef int64_t at              # the last bucket that went to the heap
    cdef double begin_s, per_s   # when the first bucket begins; buckets a second
    cdef int32_t free_chunk      # the first free chunk, or -1
    cdef int32_t soon, later     # slots that rose to the second and third row last, or -1: for prefetching
    cdef bint fresh              # a bucket went to the heap since this was set to False
    cdef int push(self, double t, int32_t slot, int32_t turn) except -1 nogil
    cdef int pop(self) except -1 nogil
    cdef int32_t prefetch(self, const Slot* slots) noexcept nogil
    cdef int64_t bucket_of(self, double t) noexcept nogil
    cdef int insert(self, const Departure* new) except -1 nogil
    cdef int to_heap(self, const Departure* new) except -1 nogil
    cdef int to_bucket(self, int64_t b, const Departure* new) except -1 nogil
    cdef int to_beyond(self, const Departure* new) except -1 nogil
    cdef int rebuild(self) except -1 nogil
    cdef bint find_width(self, int64_t count) noexcept nogil
    cdef int unsort(self) except -1 nogil
    cdef int move_bucket(self, Bucket* bucket, bint far) except -1 nogil
    cdef int alloc_buckets(self, int64_t count) except -1 nogil
    cdef int refill(self) except -1 nogil
    cpdef int verify(self) except -1
