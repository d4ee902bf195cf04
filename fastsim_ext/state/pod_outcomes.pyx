"""Outcome rows, one for each end of a stay or pod, and the values taken from them: waits, slowdowns, losses."""

from libc.stdint cimport int64_t


cdef inline void span_add(double[:, ::1] room, int64_t* count, int what, double value) noexcept nogil:
    """Append a value to a row."""
    room[what, count[what]] = value
    count[what] += 1


cdef outcome_spans(const Outcome* row, int64_t n, double[:, ::1] room):
    """Write the values of ``n`` outcome rows to the rows of SPANS; see WorkTable.spans()."""
    cdef int64_t[SPANS] count
    cdef int64_t preemptions = 0
    cdef int64_t restarts = 0
    cdef double slowdown
    cdef int k
    if room.shape[0] != SPANS or room.shape[1] < n:
        raise ValueError(f"room of {room.shape[0]} rows of {room.shape[1]}, expected {SPANS} of {n}")
    for k in range(SPANS):
        count[k] = 0
    with nogil:
        for _ in range(n):
            if row.attempt == 0 and row.node >= 0 and row.closes & INTERVAL:
                span_add(room, count, WAIT, row.start - row.submit)
            if row.reason == FINISHED:
                span_add(room, count, JCT, row.end - row.submit)
                slowdown = outcome_slowdown(row, row.end - row.submit)
                if slowdown == slowdown:
                    span_add(room, count, SLOWDOWN, slowdown)
                if row.paused > 0:
                    span_add(room, count, PAUSED, row.paused)
            if row.closes & POD:
                preemptions += row.preemptions
                restarts += outcome_restarts(row)
                if row.lost > 0:
                    span_add(room, count, LOST, row.lost)
                if row.wasted > 0:
                    span_add(room, count, WASTED, row.wasted)
            row += 1
    return [count[k] for k in range(SPANS)], preemptions, restarts


def spans_of(const unsigned char[::1] rows, double[:, ::1] room):
    """The same as WorkTable.spans() for drained outcome rows, as bytes."""
    if rows.shape[0] % <int64_t> sizeof(Outcome):
        raise ValueError(f"{rows.shape[0]} bytes are no outcome rows")
    if not rows.shape[0]:
        return [0] * SPANS, 0, 0
    return outcome_spans(<const Outcome*> &rows[0], rows.shape[0] // <int64_t> sizeof(Outcome), room)
