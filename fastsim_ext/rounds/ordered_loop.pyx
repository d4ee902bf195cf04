"""The loop of ordered rounds: jobs are put in order, get GPUs and all that goes with them.

Rounds begin at fixed times, each with empty servers; a round without jobs is left out. A job that has its GPUs works
for a round and gives them back at its end.
"""

cimport cython
from libc.math cimport INFINITY, ceil, floor, rint
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memset
from cpython.bytes cimport PyBytes_FromStringAndSize
from fastsim_ext.memory cimport memory_grown
from fastsim_ext.rounds.job_table cimport Job, JobTable, job_runs
from fastsim_ext.rounds.leases cimport Task
from fastsim_ext.rounds.node_presence cimport NodePresence
from fastsim_ext.rounds.ordered_jobs cimport RESOURCES, OrderedJob
from fastsim_ext.rounds.resource_shares cimport FAIR, OPT, TUNE
from fastsim_ext.rounds.server_allocation cimport ServerPart


@cython.final
cdef class OrderedLoop(RoundLoop):
    """A run in ordered rounds, see ``fastsim.engine.orders.run``."""

    def __init__(self, gpus, servers, cap__sr, base, need__kr, speedup__k, step_s__kg, terms, level_s, packed__k, *,
                 int mechanism, bint narrow, bint sticky, bint blocking, double admit, double round_s, double begin_s,
                 double starving_s, quirks, **rounds):
        cdef bint raises, sweeping
        raises, sweeping, self.whole, self.lease_end, self.gap_ends, self.stale_speedup = quirks
        RoundLoop.__init__(self, JobTable(len(gpus), round_s / 2), gpus, round_s=round_s, **rounds)
        self.ordered_jobs, self.allocation = OrderedJobTable(terms, level_s), ServerAllocation(servers, cap__sr, base)
        self.shares = ResourceShares(self.table, self.ordered_jobs, self.allocation, step_s__kg, packed__k,
                                     mechanism, raises, sweeping)
        self.need__kr, self.speedup__k, self.step_s__kg = need__kr, speedup__k, step_s__kg
        self.starving_s, self.narrow, self.sticky, self.blocking = starving_s, narrow, sticky, blocking
        self.admitted_gpus = admit * self.allocation.gpus
        self.begin_s = self.now_s = self.end_s = begin_s
        self.context.plain, self.context.gpus = mechanism == FAIR, self.allocation.gpus
        self.context.cpu_milli, self.context.memory_mib = sum(cap__sr[:, 0]), sum(cap__sr[:, 1])

    def __dealloc__(self):
        free(self.chosen)
        free(self.records)

    # ------------------------------------------------------------------ outside

    def follow(self, NodePresence presence not None):
        """Nodes come and go as ``presence`` has it; before the first round."""
        RoundLoop.follow(self, presence)
        self.allocation.follow(presence)

    def chosen_rows(self):
        """Rows of the jobs that run in this round, in their order, for mechanism ``opt``."""
        return [self.chosen[i] for i in range(self.n_chosen)]

    def assign_shares(self, const double[:, ::1] need__jr, const double[::1] speedup__j):
        """Set the resources and the speedup of each of these jobs."""
        cdef int32_t i, r
        cdef OrderedJob* entry
        if need__jr.shape[0] != self.n_chosen or need__jr.shape[1] != RESOURCES or speedup__j.shape[0] != self.n_chosen:
            raise ValueError(f"{need__jr.shape[0]} rows, expected {self.n_chosen}")
        for i in range(self.n_chosen):
            entry = &self.ordered_jobs.entries[self.chosen[i]]
            entry.speedup = speedup__j[i]
            for r in range(RESOURCES):
                entry.share[r] = need__jr[i, r]

    def drained(self):
        """Records of rounds since the last call, as bytes."""
        part = PyBytes_FromStringAndSize(<char*> self.records, self.n_records * sizeof(RoundRecord))
        self.n_records = 0
        return part

    # ------------------------------------------------------------------ time

    cdef bint wants_arrivals(self) noexcept nogil:
        """Whether all jobs read so far have arrived, admitted or not, and others are to be read."""
        return not self.closed and (
            self.at_pending == self.n_pending or self.pending[self.n_pending - 1].submit_s <= self.now_s)

    cdef bint finished(self) noexcept nogil:
        """Also at the first gap between jobs, with the quirk ``gap_ends``."""
        return RoundLoop.finished(self) or (
            self.gap_ends and self.last < 0 and self.rounds > 0 and self.table.n == 0 and (
                self.at_pending == self.n_pending or self.pending[self.at_pending].submit_s > self.now_s))

    cdef int64_t undrained(self) noexcept nogil:
        return RoundLoop.undrained(self) + self.n_records

    cdef void nodes_changed(self) noexcept nogil:
        """The servers of the round that begins are others."""
        self.allocation.clear()

    cdef void advance_time(self) noexcept nogil:
        """Time goes on to the first round in which there is a job."""
        cdef double next_s
        if self.table.n or self.at_pending == self.n_pending:
            return
        next_s = self.pending[self.at_pending].submit_s
        if next_s > self.now_s:
            self.now_s = self.begin_s + ceil((next_s - self.begin_s) / self.round_s) * self.round_s

    cdef int arrive(self) except -1 nogil:
        if self.measured:
            self.report_arrivals()
        return RoundLoop.arrive(self)

    cdef int enter(self, Job* new) except -1 nogil:
        """Add the demand of a job that is admitted."""
        cdef OrderedJob entry
        self.begin_entry(new, &entry)
        self.demanded_gpus += new.num_gpu
        self.quiet = 0
        return self.ordered_jobs.enter(&entry)

    cdef int report_arrivals(self) except -1 nogil:
        """Record arrivals in the metrics, also of jobs that are not admitted yet."""
        cdef int64_t i = self.at_pending
        cdef const Job* new
        if i < self.n_pending:  # those before were reported in earlier rounds, and wait
            i += max(self.reported - self.pending[i].id, <int64_t> 0)
        while i < self.n_pending and self.pending[i].submit_s <= self.now_s:
            new = &self.pending[i]
            self.metrics.arrive(new.submit_s, new.id, new.num_gpu)
            self.reported = new.id + 1
            i += 1
        return 0

    cdef bint admits(self, const Job* job) noexcept nogil:
        """Whether the job's demand is within the admitted GPUs; the first job always is."""
        return self.table.n == 0 or self.demanded_gpus + job.num_gpu <= self.admitted_gpus

    cdef void begin_entry(self, const Job* job, OrderedJob* entry) noexcept nogil:
        """The entry of a job that has just arrived."""
        cdef int32_t r, g
        memset(entry, 0, sizeof(OrderedJob))  # bytes between fields are stored, too
        for r in range(RESOURCES):
            entry.need[r] = self.need__kr[job.kind, r]
            entry.share[r] = 0.0
        entry.step_s = INFINITY
        for g in range(self.table.width):
            if self.step_s__kg[job.kind, g] > 0:
                entry.step_s = min(entry.step_s, self.step_s__kg[job.kind, g])
        entry.own_speedup = entry.speedup = self.speedup__k[job.kind]
        entry.attained_s, entry.last_s = 0.0, job.submit_s
        entry.priority, entry.model, entry.first_part, entry.n_parts, entry.plain = 0, -1, -1, 0, False

    # ------------------------------------------------------------------ order

    cdef bint asks(self) except -1 nogil:
        """Put the jobs in order; with ``opt`` the policy decides what those that are served get."""
        self.sort_jobs()
        return self.shares.mechanism == OPT

    cdef int sort_jobs(self) except -1 nogil:
        """Put the jobs in order, and name those that are served."""
        cdef int32_t i
        cdef OrderedJob* entry
        for i in range(self.table.n):
            entry = &self.ordered_jobs.entries[i]
            entry.first_part, entry.n_parts = -1, 0
            if self.now_s - entry.last_s > self.starving_s:
                entry.priority = 1
            if not self.stale_speedup:
                entry.speedup = entry.own_speedup
        self.context.now_s = self.now_s
        if self.value.shape[0] > 0:
            self.context.value = &self.value[0]
        self.ordered_jobs.arrange(self.table, &self.context)
        for i in range(self.table.n):
            self.ordered_jobs.entries[i].speedup = self.ordered_jobs.entries[i].own_speedup
        if self.table.n > self.chosen_room:
            self.chosen = <int32_t*> memory_grown(self.chosen, 2 * self.table.n, sizeof(int32_t))
            self.chosen_room = 2 * self.table.n
        self.choose()
        return 0

    cdef void choose(self) noexcept nogil:
        """All jobs in order; or only those whose GPUs are there, and with ``tune`` the largest gangs first."""
        cdef int32_t i, j, row
        cdef int32_t left = self.allocation.present_gpus
        cdef bint only = self.narrow or self.shares.mechanism == OPT
        self.n_chosen = 0
        for i in range(self.table.n):
            row = self.ordered_jobs.order[i]
            if only:
                if self.table.jobs[row].num_gpu > left:
                    continue
                left -= self.table.jobs[row].num_gpu
            self.chosen[self.n_chosen] = row
            self.n_chosen += 1
        if not (self.narrow and self.shares.mechanism == TUNE):
            return
        for i in range(1, self.n_chosen):
            row = self.chosen[i]
            j = i
            while j > 0 and self.table.jobs[self.chosen[j - 1]].num_gpu < self.table.jobs[row].num_gpu:
                self.chosen[j] = self.chosen[j - 1]
                j -= 1
            self.chosen[j] = row

    # ------------------------------------------------------------------ a round

    cdef int run_round(self) except -1 nogil:
        """Allocate servers to the jobs in their order and run the jobs that have an allocation."""
        cdef int32_t i
        cdef bint moved = False
        cdef Task* task
        self.leases.reserve(self.table.n)
        self.leases.begin()
        self.allocation.reserve(self.table.n)
        self.allocation.clear()
        self.allocate_all()
        self.link_tasks()
        for i in range(self.leases.n):
            task = &self.leases.tasks[i]
            self.list_gpus(task, &self.ordered_jobs.entries[task.row])
            self.work(task)
            moved |= task.steps > 0 or self.is_lost(task)
        self.quiet = self.quiet + 1 if not moved and (
            self.at_pending == self.n_pending or self.pending[self.at_pending].submit_s <= self.now_s) else 0
        self.record_round()
        return self.settle()

    cdef void allocate_all(self) noexcept nogil:
        """Those that keep their GPUs first, then all others in their order."""
        cdef int32_t i, row, left
        cdef bint shut = False
        cdef Job* job
        if self.sticky:
            left = self.allocation.present_gpus
            for i in range(self.n_chosen):
                row = self.chosen[i]
                job = &self.table.jobs[row]
                job.taken = job.num_gpu <= left and (not shut or self.had_gpus(job))
                if job.taken:
                    left -= job.num_gpu
                    if self.had_gpus(job):
                        job.taken = self.shares.allot_again(row, self.leases.last[job.task].model,
                                                            &self.leases.last_gpu[self.leases.last[job.task].held])
                        if job.taken:
                            self.begin_task(i, row)
                else:
                    shut |= self.blocking
        shut = False
        for i in range(self.n_chosen):
            row = self.chosen[i]
            job = &self.table.jobs[row]
            if self.sticky and job.taken and self.had_gpus(job):
                continue
            if not shut and self.shares.allot(row):
                self.begin_task(i, row)
            else:
                shut |= self.blocking

    cdef bint had_gpus(self, const Job* job) noexcept nogil:
        """Whether the job had GPUs in the last round."""
        return job.num_gpu > 0 and job.task >= 0 and self.leases.last[job.task].id == job.id

    cdef void begin_task(self, int32_t place, int32_t row) noexcept nogil:
        """Add the task of a job that has an allocation."""
        cdef const Job* job = &self.table.jobs[row]
        cdef Task* task = &self.leases.tasks[self.leases.n]
        self.leases.n += 1
        task.id, task.row, task.num_gpu, task.model = job.id, row, job.num_gpu, self.ordered_jobs.entries[row].model
        task.mate = task.pair = -1
        task.mate_id = -1
        task.priority, task.deficit = place, 0.0
        task.before = job.task

    cdef void list_gpus(self, Task* task, const OrderedJob* entry) noexcept nogil:
        """List the task's GPUs, and see whether it had the same ones."""
        cdef int32_t at = entry.first_part
        cdef int32_t gpu
        cdef uint64_t bits
        cdef const ServerPart* part
        task.held = self.leases.n_held
        while at >= 0:
            part = &self.allocation.parts[at]
            bits, gpu = part.gpus, self.allocation.servers[part.server].first
            while bits:
                if bits & 1:
                    self.leases.gpu[self.leases.n_held] = gpu
                    self.leases.n_held += 1
                bits >>= 1
                gpu += 1
            at = part.next
        task.kept = (
            task.before >= 0 and self.leases.last[task.before].num_gpu == task.num_gpu
            and self.leases.last[task.before].id >= 0 and memcmp(
                &self.leases.gpu[task.held], &self.leases.last_gpu[self.leases.last[task.before].held],
                task.num_gpu * sizeof(int32_t)) == 0
        )

    cdef void work(self, Task* task) noexcept nogil:
        """Steps of the job in this round, and its finish time."""
        cdef Job* job = &self.table.jobs[task.row]
        cdef OrderedJob* entry = &self.ordered_jobs.entries[task.row]
        cdef double delay_s = job_runs(job, self.now_s, task.kept, self.restart_s)
        cdef double step_s = self.step_s__kg[job.kind, task.model]
        cdef double left = job.total - job.run
        cdef double spent_s = self.round_s
        cdef double* busy_s = self.leases.busy_s
        cdef int32_t i
        if not entry.plain:
            step_s /= entry.speedup
        task.steps = (self.round_s - delay_s) / step_s
        if self.whole:
            task.steps = floor(task.steps)
        task.finish_s = self.now_s + self.round_s
        if task.steps >= left:
            task.steps = left
            if not self.lease_end:
                spent_s = min(spent_s, delay_s + left * step_s)
                task.finish_s = self.now_s + spent_s
        if self.is_lost(task):
            self.lose(task, job)
            return
        if task.steps >= left:
            job.run, job.finish_s, job.ended = job.total, task.finish_s, True
        else:
            job.run += task.steps
        job.cost += self.price[task.model] * spent_s / 3600 * job.num_gpu
        job.gpu_s += spent_s * job.num_gpu
        job.delayed_s += min(delay_s, spent_s)
        self.wasted_gpu_s += min(delay_s, spent_s) * job.num_gpu
        entry.attained_s += self.round_s
        entry.last_s = self.now_s + self.round_s
        for i in range(task.held, task.held + task.num_gpu):
            busy_s[self.leases.gpu[i]] += max(spent_s - delay_s, 0.0)

    cdef bint is_lost(self, const Task* task) noexcept nogil:
        """Whether a server of a task goes away before the task is finished."""
        cdef int32_t at = self.ordered_jobs.entries[task.row].first_part
        if self.presence is None:
            return False
        while at >= 0:
            if self.presence.goes(&self.allocation.servers[self.allocation.parts[at].server].first, 1, task.finish_s):
                return True
            at = self.allocation.parts[at].next
        return False

    cdef void lose(self, Task* task, Job* job) noexcept nogil:
        """A job has its GPUs for the whole round, in vain."""
        task.steps, task.finish_s = 0.0, self.now_s + self.round_s
        job.cost += self.price[task.model] * self.round_s / 3600 * job.num_gpu
        job.gpu_s += self.round_s * job.num_gpu
        self.wasted_gpu_s += self.round_s * job.num_gpu
        self.ordered_jobs.entries[task.row].last_s = task.finish_s

    cdef int record_round(self) except -1 nogil:
        """Append the record of the round, note its tasks and update the metrics."""
        cdef int32_t i
        cdef int64_t cpu_milli = 0
        cdef int64_t memory_mib = 0
        cdef RoundRecord* record
        cdef const OrderedJob* entry
        if self.n_records == self.record_room:
            self.records = <RoundRecord*> memory_grown(self.records, 2 * self.record_room + 64, sizeof(RoundRecord))
            self.record_room = 2 * self.record_room + 64
        record = &self.records[self.n_records]
        self.n_records += 1
        record[0] = RoundRecord(
            self.rounds - 1, self.table.n, self.leases.n, self.leases.n_held, 0,
            self.now_s, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        )
        for i in range(self.leases.n):
            entry = &self.ordered_jobs.entries[self.leases.tasks[i].row]
            record.at_fair += entry.speedup == 1.0
            record.cpu_alloc += entry.share[0]
            record.memory_alloc += entry.share[1]
            cpu_milli += <int64_t> rint(entry.share[0])
            memory_mib += <int64_t> rint(entry.share[1])
            record.cpu_used += min(entry.share[0], entry.need[0])
            record.memory_used += min(entry.share[1], entry.need[1])
            record.cpu_demand += entry.need[0]
            record.memory_demand += entry.need[1]
        return self.note_round(cpu_milli, memory_mib)

    cdef int settle(self) except -1 nogil:
        """The round is over: jobs that are done leave."""
        cdef int32_t i
        cdef bint any_ended = False
        cdef const Job* job
        for i in range(self.leases.n):
            job = &self.table.jobs[self.leases.tasks[i].row]
            self.leases.tasks[i].alive = not job.ended
            if not job.ended:
                if self.is_lost(&self.leases.tasks[i]):
                    self.leases.tasks[i].id = -1  # no task of the next round keeps its GPUs
                continue
            any_ended = True
            self.demanded_gpus -= job.num_gpu
            self.done_s = max(self.done_s, job.finish_s)
            self.close(job)
            if self.measured:
                self.report_departure(&self.leases.tasks[i])
        if any_ended:
            self.ordered_jobs.compact(self.table)
            self.table.compact()
        self.now_s += self.round_s
        self.end_s = self.now_s if self.lease_end or self.table.n else self.done_s
        return 0

    cdef int report_departure(self, const Task* task) except -1 nogil:
        """A job that is done frees its GPUs and all that goes with them."""
        cdef const Job* job = &self.table.jobs[task.row]
        cdef const OrderedJob* entry = &self.ordered_jobs.entries[task.row]
        return self.metrics.depart(job.finish_s, job.id, True, &self.leases.gpu[task.held], task.num_gpu,
                                   <int64_t> rint(entry.share[0]), <int64_t> rint(entry.share[1]))

    cpdef int verify(self) except -1:
        """Tables, allocation and totals are sound."""
        cdef int32_t i
        RoundLoop.verify(self)
        assert self.ordered_jobs.n == self.table.n, f"{self.ordered_jobs.n} stakes of {self.table.n} jobs"
        assert sorted(self.ordered_jobs.ordered()) == list(range(self.table.n)), "the order has lost a job"
        for i in range(self.table.n):
            assert self.ordered_jobs.entries[i].speedup >= 0, f"row {i} goes backwards"
        return self.allocation.verify()
