"""The online engine with a waiting line that is served from outside: which of its first pods starts next, or none yet.

Decisions are due after an arrival and after departures, as long as some node can host one of these pods; the plan
chooses node and devices. Serving the head whenever it fits, and else waiting, is the rule ``fifo``, event for event.
"""

cimport cython
from libc.math cimport isnan
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.online.loop cimport FIFO, OnlineLoop
from fastsim_ext.online.stepped_loop cimport SteppedLoop
from fastsim_ext.state.departure_queue cimport ARRIVAL, RETRY
from fastsim_ext.state.pod_table cimport Slot

cdef enum:
    NO_EVENT = -1
    HOUR_S = 3600

JOB_FEATURES = ("cpu", "memory", "num_gpu", "gpu", "waited_h", "duration_h", "present")
LINE_FEATURES = ("waiting", "arrived")


cdef class SteppedQueue(SteppedLoop):
    """One episode: feed() all arrivals, then begin_line(), and serve() until it is over."""

    def __init__(self, nodes, work, select, options, reward__t, stale__n, int64_t typical_count,
                 double waiting_weight, int places):
        SteppedLoop.__init__(self, nodes, work, select, options, reward__t, stale__n, typical_count, FIFO)
        if places < 1:
            raise ValueError(f"{places} places")
        self.waiting_weight, self.places, self.event, self.event_pod = waiting_weight, places, NO_EVENT, -1
        self.fits__k = bytearray(places)

    def begin_line(self, float[:, ::1] node__nf, float[:, ::1] job__kf, float[::1] line__f, signed char[::1] mask__a):
        """Go on to the first decision and write its observation to the arrays; whether there is one."""
        self.stale__n[:] = 1
        if not self.next_choice():
            return False
        self.observe_line(node__nf, job__kf, line__f, mask__a)
        return True

    def serve(self, int place, float[:, ::1] node__nf, float[:, ::1] job__kf, float[::1] line__f,
              signed char[::1] mask__a):
        """Start the pod at a place of the line, or none, and go on: (reward, whether there is another decision)."""
        cdef double reward
        if not 0 <= place <= self.places:
            raise IndexError(f"place {place} of {self.places}")
        more = self.choose_place(place, &reward) == 1
        if more:
            self.observe_line(node__nf, job__kf, line__f, mask__a)
        return reward, more

    def restart(self):
        """Back to the first arrival with an empty cluster and an empty line."""
        cdef int32_t slot
        while self.work.head >= 0:
            slot = self.work.head
            self.work.unqueue(slot)
            self.work.leave(slot)
        self.counts.pending = 0
        self.freed, self.event, self.waited_s = False, NO_EVENT, 0
        SteppedLoop.restart(self)

    cdef int process(self, int kind) except -1 nogil:
        """An event after which pods may start stays open until its decisions are taken; its row is written then."""
        if kind != ARRIVAL and kind != RETRY:
            return OnlineLoop.process(self, kind)
        self.events += 1
        self.event, self.event_pod, self.started = kind, -1, False
        if kind == ARRIVAL:
            self.event_pod = self.a_pod_id[self.a_next]
            self.arrive()
        else:
            self.freed = False
        return 0

    cdef int admit(self, int32_t slot) except -1 nogil:
        """A pod that has just arrived joins the end of the line, or leaves because no node could ever host it."""
        cdef int reason = self.nodes.lasting_obstacle(&self.work.classes[self.work.slots[slot].cls])
        if reason != 0:
            return self.drop(slot, reason)
        self.work.queue(slot, False)
        self.counts.pending += 1
        return 0

    cdef int next_choice(self) except -1 nogil:
        """Process all events before the next decision; 1 if there is one, 0 if the episode is over."""
        while True:
            if self.event != NO_EVENT:
                if self.look() > 0:
                    return 1
                self.close_event()
            if self.loop(1) == 0:   # 0: done
                return 0

    cdef int look(self) except -1 nogil:
        """Mark which of the first pods of the line some node can host, and count them."""
        cdef int32_t slot = self.work.head
        cdef int k, stage
        self.count = 0
        for k in range(self.places):
            self.fits__k[k] = 0
            if slot >= 0:
                self.fits__k[k] = self.select.feasible(&self.work.classes[self.work.slots[slot].cls], &stage) > 0
                slot = self.work.slots[slot].after
            self.count += self.fits__k[k]
        return self.count

    cdef int close_event(self) except -1 nogil:
        """Close the event, after which no more pods start: write its row."""
        # An attempt that failed counts, as it does in the engine, so that random draws stay what they are there.
        if self.work.head >= 0 and (self.event == RETRY or (
                self.work.waiting == 1 and self.work.slots[self.work.head].seq == self.a_seq - 1)):
            self.select.attempts += 1
        if self.event == ARRIVAL and self.counts.arrived_gpu <= self.nodes.total.gpu_cap:
            self.fill_row(&self.at_capacity, ARRIVAL, self.event_pod)
        if self.record == 1 and (self.event == ARRIVAL or self.started):
            self.write_row(self.event, self.event_pod)
        self.event = NO_EVENT
        return 0

    cdef int choose_place(self, int place, double* reward) except -1 nogil:
        """Start the pod at this place, or close the event if there is none that fits; 1 if another decision is due."""
        cdef double before = self.value()
        cdef int32_t slot = self.work.head
        cdef int more, _k
        if place < self.places and self.fits__k[place]:
            for _k in range(place):
                slot = self.work.slots[slot].after
            self.start(slot)
            self.started = True
        else:
            self.close_event()
        reward[0] = self.value() - before
        more = self.next_choice()
        reward[0] -= self.waiting_weight * self.waiting_since()
        return more

    cdef double waiting_since(self) noexcept nogil:
        """Hours that pods have waited since the last decision, added up."""
        cdef double before = self.waited_s
        self.waited_s = self.area[7]
        return (self.waited_s - before) / HOUR_S

    @cython.cdivision(True)
    cdef void observe_line(self, float[:, ::1] node__nf, float[:, ::1] job__kf, float[::1] line__f,
                           signed char[::1] mask__a) noexcept nogil:
        """The observation: shares of capacity by node, the first pods of the line, and what may be done."""
        cdef int32_t slot = self.work.head
        cdef const Slot* s
        cdef int k
        self.observe_nodes(node__nf)
        job__kf[:, :] = 0
        for k in range(self.places):
            mask__a[k] = self.fits__k[k]
            if slot >= 0:
                s = &self.work.slots[slot]
                self.observe_pod(s.cls, &job__kf[k, 0])
                job__kf[k, 4] = <float> ((self.now - s.submit) / HOUR_S)
                job__kf[k, 5] = -1 if isnan(s.duration) else <float> (s.duration / HOUR_S)
                job__kf[k, 6] = 1
                slot = s.after
        # Without anything to come, waiting would last for ever.
        mask__a[self.places] = self.a_next < self.a_count or self.departures.size > 0
        line__f[0], line__f[1] = self.work.waiting, <float> self.a_next / self.a_count


def served(list episodes, const int64_t[::1] place__e, float[:, :, ::1] nodes__enf, float[:, :, ::1] jobs__ekf,
           float[:, ::1] line__ef, signed char[:, ::1] mask__ea, double[::1] reward__e, unsigned char[::1] over__e):
    """One decision of every episode; those that are over begin again, which is marked in ``over__e``."""
    cdef SteppedQueue episode
    cdef int e
    if not (len(episodes) == place__e.shape[0] == nodes__enf.shape[0] == jobs__ekf.shape[0] == line__ef.shape[0]
            == mask__ea.shape[0] == reward__e.shape[0] == over__e.shape[0]):
        raise ValueError("the arrays are for another number of episodes")
    for e in range(place__e.shape[0]):  # before one of them goes on
        episode = episodes[e]
        if not 0 <= place__e[e] <= episode.places:
            raise IndexError(f"place {place__e[e]} of {episode.places}")
    for e in range(place__e.shape[0]):
        episode = episodes[e]
        over__e[e] = episode.choose_place(<int> place__e[e], &reward__e[e]) == 0
        if over__e[e]:
            episode.restart()
            episode.next_choice()
        episode.observe_line(nodes__enf[e], jobs__ekf[e], line__ef[e], mask__ea[e])


def restarted(list episodes, float[:, :, ::1] nodes__enf, float[:, :, ::1] jobs__ekf, float[:, ::1] line__ef,
              signed char[:, ::1] mask__ea):
    """Restart every episode at its first decision."""
    cdef SteppedQueue episode
    cdef int e
    for e in range(len(episodes)):
        episode = episodes[e]
        episode.restart()
        episode.next_choice()
        episode.observe_line(nodes__enf[e], jobs__ekf[e], line__ef[e], mask__ea[e])
