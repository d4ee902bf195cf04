"""The common part of all runs in rounds: the order of a round, jobs to come, prices, and records of what ran.

Subclasses say how time goes on, which jobs are admitted, when the policy decides, and what runs in a round.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memmove
from fastsim_ext.memory cimport memory_grown
from fastsim_ext.rounds.job_table cimport job_begin, job_waits
from fastsim_ext.rounds.leases cimport Task
from fastsim_ext.types cimport ASK_POLICY, DEADLOCK, DONE, DRAIN, PAUSE, PRICE_CHANGE, WANT_ARRIVALS, WANT_NODE_CHANGES

cdef enum:
    MOST_WAITING = 65536               # records before they must be drained
    PATIENCE = 3         # rounds in a row in which nothing can happen


cdef class RoundLoop:
    """A run; ``advance`` returns when Python must act, see ``fastsim.engine.rounds.driver``."""

    def __init__(self, JobTable table not None, gpus, *, double round_s, double restart_s, double until_s,
                 int64_t first, int64_t last, bint recorded, ClusterMetrics metrics=None):
        import numpy as np
        self.table, self.leases, self.log, self.price = table, Leases(gpus), RoundLog(), np.zeros(len(gpus))
        self.metrics, self.measured, self.recorded = metrics, metrics is not None, recorded
        self.round_s, self.restart_s, self.until_s, self.first, self.last = round_s, restart_s, until_s, first, last
        self.next_price_s = INFINITY

    def __dealloc__(self):
        free(self.pending)

    # ------------------------------------------------------------------ outside

    def feed(self, const double[::1] submit, const int32_t[::1] kind, const int32_t[::1] num_gpu,
             const double[::1] total, const double[::1] weight, const double[::1] deadline,
             const int32_t[::1] tenant, bint closed, const int32_t[::1] estimated_kind=None,
             value=None):
        """Further jobs in order of arrival, behind those that came and are not admitted; ``closed``: the last ones.

        ``estimated_kind`` is each job's estimated kind when it shares GPUs; None: its own kind. ``value`` has those of
        the columns that an order reads, MOST_TERMS for each job so far, by id; None: it reads none.
        """
        cdef int64_t i, n = submit.shape[0], left = self.n_pending - self.at_pending
        cdef int64_t id = self.table.added + left
        if left and self.pending[self.n_pending - 1].submit_s > self.now_s:
            raise ValueError("there are jobs that have not arrived yet")
        if left + n > self.pending_room:
            self.pending = <Job*> memory_grown(self.pending, left + n, sizeof(Job))
            self.pending_room = left + n
        if left:
            memmove(self.pending, &self.pending[self.at_pending], left * sizeof(Job))
        for i in range(n):
            job_begin(&self.pending[left + i], id + i, kind[i], num_gpu[i], tenant[i], submit[i], total[i], weight[i],
                      deadline[i])
            if estimated_kind is not None:
                self.pending[left + i].estimated_kind = estimated_kind[i]
        self.n_pending, self.at_pending, self.closed, self.value = left + n, 0, closed, value

    def reprice(self, const double[::1] price, double next_change_s):
        """Prices from now on, $/h for a GPU of each model, until they may change again."""
        cdef int g
        for g in range(self.table.width):
            self.price[g] = price[g]
        self.next_price_s = next_change_s

    def follow(self, NodePresence presence not None):
        """Nodes come and go as ``presence`` has it; before the first round."""
        self.presence = presence
        self.leases.follow(presence)
        if self.measured:
            self.metrics.see_nodes(presence)

    def advance(self, int64_t budget):
        """Play on, at most ``budget`` rounds; returns why it stopped."""
        with nogil:
            budget = self.run_stages(budget)
        return budget

    # ------------------------------------------------------------------ the order of a round

    cdef int run_stages(self, int64_t budget) except -1 nogil:
        """The state machine of a round; returns a Stop when Python must act, the next call continues at that stage."""
        while True:
            if self.stage == AT_TOP:
                if self.wants_arrivals():
                    return WANT_ARRIVALS
                if self.finished():
                    return DONE
                if self.undrained() >= MOST_WAITING:
                    return DRAIN
                if self.stuck():
                    return DEADLOCK
                if budget == 0:
                    return PAUSE
                budget -= 1
                self.advance_time()
                self.stage = AT_WORK
                if self.now_s >= self.next_price_s:
                    return PRICE_CHANGE
            if self.stage == AT_WORK:
                self.complete()
                self.stage = AT_ARRIVALS
            if self.stage == AT_ARRIVALS:
                self.arrive()
                if self.wants_arrivals():
                    return WANT_ARRIVALS
                self.max_active = max(self.max_active, self.table.n)
                self.rounds += 1
                self.job_rounds += self.table.n
                self.stage = AT_NODES
            if self.stage == AT_NODES:
                if self.presence is not None:
                    if self.presence.wants(self.now_s + self.round_s):
                        return WANT_NODE_CHANGES
                    self.see_nodes()
                self.stage = AT_CHOICE
                if self.asks():
                    self.calls += 1
                    return ASK_POLICY
            self.run_round()
            self.stage = AT_TOP

    cdef bint wants_arrivals(self) noexcept nogil:
        """Whether all jobs read so far have arrived, and others are to be read."""
        return self.at_pending == self.n_pending and not self.closed

    cdef bint finished(self) noexcept nogil:
        """Whether the jobs that must end have ended, or the time is over."""
        cdef int64_t last = self.last
        if self.now_s >= self.until_s:
            return True
        if self.closed and self.at_pending == self.n_pending and (last < 0 or last > self.table.added):
            last = self.table.added
        return last >= 0 and self.ended >= last - self.first

    cdef int64_t undrained(self) noexcept nogil:
        """Number of records that have not been drained."""
        return self.log.undrained()

    cdef bint stuck(self) noexcept nogil:
        """Whether nothing will happen any more."""
        return self.quiet == PATIENCE

    cdef void advance_time(self) noexcept nogil:
        """Time goes on to the round that begins next."""

    cdef int complete(self) except -1 nogil:
        """The last round is over: jobs that are done leave."""
        return 0

    cdef int arrive(self) except -1 nogil:
        """Jobs that have arrived and are admitted enter the table."""
        cdef Job* new
        while self.at_pending < self.n_pending:
            new = &self.pending[self.at_pending]
            if new.submit_s > self.now_s or not self.admits(new):
                break
            self.enter(new)
            self.table.enter(new)
            self.at_pending += 1
        return 0

    cdef bint admits(self, const Job* job) noexcept nogil:
        """Whether a job that has arrived may enter."""
        return True

    cdef int enter(self, Job* new) except -1 nogil:
        """Prepare a job that enters the table next."""
        return 0

    cdef void see_nodes(self) noexcept nogil:
        """See the nodes that have come or gone since the last round, and those that go before this one ends."""
        if self.presence.advance(self.now_s, self.now_s + self.round_s):
            self.leases.count_present()
            self.nodes_changed()
        if self.presence.next_s() < INFINITY:
            self.quiet = 0  # a node that comes back lets jobs run

    cdef void nodes_changed(self) noexcept nogil:
        """A node has come or gone since the last round."""

    cdef bint asks(self) except -1 nogil:
        """Whether the policy decides about this round."""
        return False

    cdef int run_round(self) except -1 nogil:
        """Choose the jobs of the round, give them GPUs and compute their steps."""
        return 0

    # ------------------------------------------------------------------ records

    cdef void link_tasks(self) noexcept nogil:
        """Each job learns its task; one that had GPUs and has no task waits."""
        cdef int32_t i
        cdef Job* job
        cdef const Task* task
        for i in range(self.table.n):
            self.table.jobs[i].task = -1
        for i in range(self.leases.n):
            task = &self.leases.tasks[i]
            self.table.jobs[task.row].task = i
            if task.mate >= 0:
                self.table.jobs[task.mate].task = i
        for i in range(self.table.n):
            job = &self.table.jobs[i]
            if job.task < 0 and job.holds:
                job_waits(job, self.now_s)

    cdef int note_round(self, int64_t cpu_milli, int64_t memory_mib) except -1 nogil:
        """Record this round's tasks, which hold so much beside their GPUs, and update the metrics."""
        cdef int32_t i
        cdef int32_t running = 0
        self.leases.count()
        for i in range(self.leases.n):
            running += 1 + (self.leases.tasks[i].mate >= 0)
            if self.recorded:
                self.log.note(self.leases, i, self.rounds - 1, self.now_s)
        if self.measured:
            self.metrics.apply_changes(self.now_s)
            self.metrics.count_gpus(self.leases)
            if self.presence is not None:
                self.metrics.see_nodes(self.presence)
            self.metrics.charge(cpu_milli, memory_mib)
            self.metrics.begin_round(self.rounds - 1, running)
        return 0

    cdef int close(self, const Job* job) except -1 nogil:
        """Record a job that has ended."""
        self.ended += job.id >= self.first and (self.last < 0 or job.id < self.last)
        return self.log.close(job)

    cpdef int verify(self) except -1:
        """Table, leases and totals are sound."""
        self.table.verify()
        self.leases.verify()
        if self.measured:
            self.metrics.verify()
        return 0
