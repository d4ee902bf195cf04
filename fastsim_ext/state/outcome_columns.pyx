"""Outcome rows split into the columns of the tables ``placements`` and ``jobs``, in one pass.

Columns have Arrow's layout: a validity bit for every row, and offsets and values for lists.
"""

from libc.math cimport NAN, isnan
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t
from fastsim_ext.state.pod_outcomes cimport INTERVAL, POD, Outcome, outcome_restarts, outcome_slowdown
from fastsim_ext.state.pod_outcomes cimport FINISHED
from fastsim_ext.types cimport MAX_GPUS


cdef enum:
    HOUR = 3600          # seconds


cdef inline void column_second(double seconds, int64_t at, double[::1] values, uint8_t[::1] known) noexcept nogil:
    """Write seconds, or no value for NaN."""
    values[at] = seconds
    if not isnan(seconds):
        known[at >> 3] |= <uint8_t> (1 << (at & 7))


cdef inline int64_t column_devices(uint64_t mask, int64_t at, int16_t[::1] devices) noexcept nogil:
    """Write the devices of a mask, ascending, from ``at`` on; returns the end."""
    cdef int16_t g = 0
    while mask:
        if mask & 1:
            devices[at] = g
            at += 1
        mask >>= 1
        g += 1
    return at


cdef const Outcome* outcome_rows(const unsigned char[::1] rows, int64_t first, int64_t* count) except NULL:
    """The outcome rows from ``first`` on, and their number."""
    count[0] = rows.shape[0] // <int64_t> sizeof(Outcome) - first
    if rows.shape[0] % <int64_t> sizeof(Outcome) or first < 0 or count[0] <= 0:
        raise ValueError(f"{rows.shape[0]} bytes are no outcome rows from row {first} on")
    return <const Outcome*> &rows[0] + first


def add_placements(const unsigned char[::1] rows, int64_t first, room, int64_t at):
    """Append the stays that end to the columns of ``room`` from its row ``at`` on; (first row not read, next row).

    Stops when the columns are full or may lack room for devices. ``code`` numbers nodes by first appearance: ``number``
    has the code of each node or -1, ``appeared`` the node of each code.
    """
    cdef int64_t[::1] pod_id = room["pod_id"]
    cdef int64_t[::1] node_id = room["node_id"]
    cdef int16_t[::1] attempt = room["attempt"]
    cdef int32_t[::1] code = room["code"]
    cdef int32_t[::1] number = room["number"]
    cdef int32_t[::1] appeared = room["appeared"]
    cdef int64_t[::1] offsets = room["offsets"]
    cdef int16_t[::1] devices = room["devices"]
    cdef double[::1] start = room["start_s"]
    cdef double[::1] end = room["end_s"]
    cdef uint8_t[::1] reason = room["reason"]
    cdef uint8_t[::1] on_node = room["node_known"]
    cdef uint8_t[::1] started = room["start_s_known"]
    cdef uint8_t[::1] ended = room["end_s_known"]
    cdef int32_t codes = room["codes"]
    cdef int64_t n, i
    cdef const Outcome* row = outcome_rows(rows, first, &n)
    if not 0 <= at <= pod_id.shape[0]:
        raise IndexError(f"no row {at} of {pod_id.shape[0]}")
    with nogil:
        i = 0
        while i < n and at < pod_id.shape[0] and offsets[at] + MAX_GPUS <= devices.shape[0]:
            if row.closes & INTERVAL:
                pod_id[at], node_id[at], attempt[at] = row.pod_id, row.node, <int16_t> row.attempt
                reason[at] = <uint8_t> row.reason
                offsets[at + 1] = column_devices(row.gpus, offsets[at], devices)
                code[at] = 0
                if row.node >= 0:
                    on_node[at >> 3] |= <uint8_t> (1 << (at & 7))
                    if number[row.node] < 0:
                        number[row.node], appeared[codes] = codes, <int32_t> row.node
                        codes += 1
                    code[at] = number[row.node]
                column_second(row.start, at, start, started)
                column_second(row.end, at, end, ended)
                at += 1
            row += 1
            i += 1
    room["codes"] = codes
    return first + i, at


def add_jobs(const unsigned char[::1] rows, int64_t first, const uint8_t[::1] states, room, int64_t at):
    """Append the pods that end to the columns of ``room`` from its row ``at`` on; (first row not read, next row).

    Stops when the columns are full. ``states`` has the state of each reason.
    """
    cdef int64_t[::1] pod_id = room["pod_id"]
    cdef double[::1] submit = room["submit_s"]
    cdef double[::1] start = room["start_s"]
    cdef double[::1] end = room["end_s"]
    cdef double[::1] wait = room["wait_s"]
    cdef double[::1] jct = room["jct_s"]
    cdef double[::1] lost = room["lost_work_s"]
    cdef uint8_t[::1] state = room["state"]
    cdef uint8_t[::1] reason = room["reason"]
    cdef int16_t[::1] attempts = room["attempts"]
    cdef int16_t[::1] preemptions = room["preemptions"]
    cdef int32_t[::1] restarts = room["restarts"]
    cdef double[::1] paused = room["paused_s"]
    cdef double[::1] gpu_hours = room["gpu_hours"]
    cdef double[::1] ideal = room["ideal_s"]
    cdef double[::1] slowdown = room["slowdown"]
    cdef uint8_t[::1] started = room["start_s_known"]
    cdef uint8_t[::1] ended = room["end_s_known"]
    cdef uint8_t[::1] waited = room["wait_s_known"]
    cdef uint8_t[::1] finished = room["jct_s_known"]
    cdef uint8_t[::1] paused_known = room["paused_s_known"]
    cdef uint8_t[::1] ideal_known = room["ideal_s_known"]
    cdef uint8_t[::1] slowdown_known = room["slowdown_known"]
    cdef double[::1] cost = room["cost"]
    cdef uint8_t[::1] cost_known = room["cost_known"]
    cdef double took
    cdef int64_t n, i
    cdef const Outcome* row = outcome_rows(rows, first, &n)
    if not 0 <= at <= pod_id.shape[0]:
        raise IndexError(f"no row {at} of {pod_id.shape[0]}")
    with nogil:
        i = 0
        while i < n and at < pod_id.shape[0]:
            if row.closes & POD:
                pod_id[at], submit[at], lost[at] = row.pod_id, row.submit, row.lost
                reason[at], state[at] = <uint8_t> row.reason, states[row.reason]
                attempts[at] = <int16_t> (row.attempt + (not isnan(row.start)))
                preemptions[at] = <int16_t> row.preemptions
                column_second(row.first_start, at, start, started)
                column_second(row.end, at, end, ended)
                column_second(row.first_start - row.submit, at, wait, waited)
                took = row.end - row.submit if row.reason == FINISHED else NAN
                column_second(took, at, jct, finished)
                restarts[at], gpu_hours[at] = <int32_t> outcome_restarts(row), row.gpu_s / HOUR
                column_second(row.paused, at, paused, paused_known)
                column_second(row.ideal, at, ideal, ideal_known)
                column_second(outcome_slowdown(row, took), at, slowdown, slowdown_known)
                column_second(row.cost, at, cost, cost_known)
                at += 1
            row += 1
            i += 1
    return first + i, at
