# The fast selector: score columns for frequent pod classes, bounds for rare ones.
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.select.class_frequency cimport ClassFrequency
from fastsim_ext.select.points_cache cimport PointsCache
from fastsim_ext.select.scan cimport Choice, NodeFilter, Selector
from fastsim_ext.select.score_columns cimport ScoreColumns
from fastsim_ext.types cimport Node, Pod

cdef class IndexedSelector(Selector):
    cdef readonly ScoreColumns table
    cdef PointsCache points_cache
    cdef ClassFrequency* classes
    cdef ClassFrequency* bounds                  # by family and CPU step
    cdef int class_room
    cdef int64_t largest_cpu, next_drop, next_pack
    cdef bint nested                    # whether a bound holds for all pods of its family with more CPU
    # when columns pay, see fastsim.engine.online.kernel_columns.COLUMN_SETTINGS
    cdef double window, long_window, upkeep_ns, look_ns, search_ns, miss_ns, worth_ns
    cdef int64_t drop_every, pack_every, few_classes
    cdef readonly int64_t changes, built, packed, scans, searches, evaluated
    cdef double cost                    # nanoseconds of the last search
    cdef int apply_changes(self) except -1 nogil
    cdef ClassFrequency* frequency_of(self, int32_t owner) noexcept nogil
    cdef ClassFrequency* frequency_at(self, int cls) except NULL nogil
    cdef int32_t column_for(self, int cls) except -2 nogil
    cdef int32_t choose_by_bound(self, int cls, const Pod* pod, int* reason, NodeFilter conditions) except -2 nogil
    cdef ClassFrequency* bound_of(self, const Pod* pod) noexcept nogil
    cdef ClassFrequency* bound_below(self, ClassFrequency* frequency) noexcept nogil
    cdef int32_t build_bound(self, ClassFrequency* frequency, const Pod* pod) except -2 nogil
    cdef int32_t search(self, int cls, const Pod* pod, int32_t c, int* reason, NodeFilter conditions) noexcept nogil
    cdef int note_bound(self, const Pod* pod, int count, bint missed) except -1 nogil
    cdef bint has_room(self, int n, const Pod* pod) noexcept nogil
    cdef int64_t total_of(self, int n, int cls, const Pod* pod, int* furthest, NodeFilter conditions) noexcept nogil
    cdef int64_t frag_points(self, int n, const Node* node, const Pod* pod) noexcept nogil
    cdef int64_t fresh_points(self, int term, int n, const Pod* pod) noexcept nogil
    cdef void fitting(self, int first, int count, const Pod* pod, int32_t wanted, int32_t seen,
                      int32_t* out) noexcept nogil
    cdef int32_t lane_for(self, int cls) except -2 nogil
    cdef int drop_unused(self) except -1 nogil
    cdef void renumber(self) noexcept nogil
    cpdef int verify(self) except -1
