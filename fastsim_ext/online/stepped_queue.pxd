# The online engine with a waiting line that is served from outside.
from libc.stdint cimport int64_t
from fastsim_ext.online.stepped_loop cimport SteppedLoop

cdef class SteppedQueue(SteppedLoop):
    cdef double waiting_weight           # of hours that pods wait, negative
    cdef double waited_s                 # pod seconds of waiting that rewards have counted
    cdef readonly int places             # pods at the head of the line that can be chosen
    cdef int event                       # the event whose decisions are due, or NO_EVENT
    cdef int64_t event_pod               # its pod, or -1
    cdef bint started                    # whether a pod was started in it
    cdef unsigned char[::1] fits__k      # pods of the line that some node can host, by their place; scratch
    cdef int next_choice(self) except -1 nogil
    cdef int look(self) except -1 nogil
    cdef int close_event(self) except -1 nogil
    cdef int choose_place(self, int place, double* reward) except -1 nogil
    cdef double waiting_since(self) noexcept nogil
    cdef void observe_line(self, float[:, ::1] node__nf, float[:, ::1] job__kf, float[::1] line__f,
                           signed char[::1] mask__a) noexcept nogil
