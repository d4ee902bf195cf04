# The order of events and the queue of departures.
from libc.stdint cimport int32_t, int64_t

cdef enum:  # EventKind: order at equal time; the key of the one total order is (time, kind, sequence)
    NODE, DEPARTURE, RETRY, SAMPLE, DESCHEDULE, ARRIVAL, END

cdef enum:
    PARCEL = 32          # departures that lie side by side in a bucket

cdef struct Departure:
    double t             # seconds
    int64_t seq          # order of scheduling
    int32_t slot         # who departs
    int32_t turn         # the slot's turn when this was scheduled; an older turn is void

cdef struct Parcel:
    Departure[PARCEL] items
    int32_t after        # the next parcel of the same bucket, or of those nobody uses, or -1

cdef struct Bucket:      # departures of a short time, in no order
    int32_t first        # its last parcel, the only one that may not be full, or -1
    int32_t count

cdef class DepartureQueue:
    cdef Departure* items                # a heap of the nearest departures
    cdef Departure* beyond               # those after all buckets, in no order
    cdef Bucket* buckets
    cdef Parcel* parcels
    cdef readonly int64_t size           # departures, wherever they are
    cdef readonly int64_t n_items, n_beyond, n_buckets       # n_buckets: 0 while there are few departures
    cdef int64_t room, beyond_room, parcel_room, n_parcels, scheduled
    cdef int64_t few, most       # departures that lie in one heap; for which buckets are wide enough
    cdef int64_t at              # the bucket that went to the heap last
    cdef double begin_s, per_s   # when the first bucket begins; buckets a second
    cdef int32_t idle            # the first parcel that nobody uses, or -1
    cdef int32_t soon, later     # slots that came up to the second and the third row lately, or -1: hints, for speed
    cdef bint fresh              # a bucket went to the heap since this was last set to False
    cdef int push(self, double t, int32_t slot, int32_t turn) except -1 nogil
    cdef int pop(self) except -1 nogil
    cdef int64_t bucket_of(self, double t) noexcept nogil
    cdef int file(self, const Departure* new) except -1 nogil
    cdef int to_heap(self, const Departure* new) except -1 nogil
    cdef int to_bucket(self, int64_t b, const Departure* new) except -1 nogil
    cdef int to_beyond(self, const Departure* new) except -1 nogil
    cdef int open(self) except -1 nogil
    cdef bint find_width(self, int64_t count) noexcept nogil
    cdef int gather(self) except -1 nogil
    cdef int empty(self, Bucket* bucket, bint far) except -1 nogil
    cdef int lay_out(self, int64_t count) except -1 nogil
    cdef int refill(self) except -1 nogil
    cpdef int verify(self) except -1
