# Request frequency of each pod class, and the cost of answering it without a score column.
from libc.stdint cimport int32_t, int64_t

cdef struct ClassFrequency:
    int32_t column       # its column, or -1
    int32_t lane         # of a class, in the memo: -1 = not requested yet, -3 = none
    float miss_cost      # nanoseconds of a request without a column, smoothed
    float recent_cost    # sum of them over the requests; each counts half after every window of node changes
    int64_t last_request  # node changes up to the last request

cdef void frequency_charge(ClassFrequency* frequency, int64_t now, double window, double cost) noexcept nogil
cdef double frequency_rate(const ClassFrequency* frequency, int64_t now, double window) noexcept nogil
cdef bint frequency_reliable(const ClassFrequency* frequency) noexcept nogil
cdef int frequency_room(ClassFrequency** frequencies, int had, int wanted) except -1 nogil

cdef class FrequencyTable:
    cdef ClassFrequency frequency
