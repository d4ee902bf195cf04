"""The loop of a run in rounds: jobs arrive, shares become priorities, the best candidates run for a round."""

cimport cython
from libc.math cimport INFINITY, NAN, isnan
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from fastsim_ext.memory cimport memory_grown
from fastsim_ext.rounds.cluster_metrics cimport ClusterMetrics
from fastsim_ext.rounds.completion_order cimport Completion, completions_sorted
from fastsim_ext.rounds.job_table cimport NEVER, UNREPORTED, Job, ShareAccount, job_stays, job_waits, job_begin
from fastsim_ext.rounds.leases cimport Task

cdef enum:
    MOST_FAILURES = 5    # rounds in a row without progress, then a job is given up
    MOST_WAITING = 65536               # records in the ledger before it must be drained
    PATIENCE = 3         # turns of the loop in which nothing can happen
    MOST_FROZEN = 1000   # rounds in a row in which time stands still


cdef bint round_completes(const Task* task, const Job* jobs) noexcept nogil:
    """Whether a task completes a job, by its steps: the time of the last ones may be lost to rounding."""
    cdef const Job* job = &jobs[task.row]
    cdef const Job* mate = job if task.mate < 0 else &jobs[task.mate]
    return task.steps >= job.total - job.run or (task.mate >= 0 and task.mate_steps >= mate.total - mate.run)


@cython.final
cdef class ShareLoop:
    """A run; ``advance`` returns when Python must act, see ``fastsim.engine.shares.run``."""

    def __init__(self, gpus, alone, shared, fastest, shuffle_state, *, double round_s, double realloc_s,
                 double restart_s, double until_s, int64_t first, int64_t last, bint recorded, bint endless, quirks,
                 ClusterMetrics metrics=None, bint estimated=False, **selection):
        import numpy as np
        (reserves, self.last_chunk, self.gap_counts, self.whole, self.reset_at_zero, self.stale, self.lease_cost,
         unowed, self.late_deadlines) = quirks
        self.table = JobTable(len(gpus), round_s / 2, 0.0 if unowed else round_s / 2)
        self.leases, self.log = Leases(gpus), RoundLog()
        self.selection = CandidateSelection(self.table, self.leases, alone, shared, fastest, shuffle_state,
                                            reserves=reserves, **selection)
        self.alone, self.shared = alone, shared
        self.metrics, self.measured, self.estimated = metrics, metrics is not None, estimated
        self.completions = <Completion*> calloc(self.leases.gpus + 1, sizeof(Completion))
        self.spare = <Completion*> calloc(self.leases.gpus + 1, sizeof(Completion))
        if self.completions == NULL or self.spare == NULL:
            raise MemoryError()
        self.price = np.zeros(len(gpus))
        self.round_s, self.realloc_s, self.restart_s, self.until_s = round_s, realloc_s, restart_s, until_s
        self.first, self.last, self.recorded, self.endless = first, last, recorded, endless
        self.end_s, self.next_price_s = NAN, INFINITY
        self.allocation_wanted = True

    def __dealloc__(self):
        free(self.pending)
        free(self.completions)
        free(self.spare)

    # ------------------------------------------------------------------ outside

    def feed(self, const double[::1] submit, const int32_t[::1] kind, const int32_t[::1] num_gpu,
             const double[::1] total, const double[::1] weight, const double[::1] deadline,
             const int32_t[::1] tenant, bint closed, const int32_t[::1] estimated_kind=None):
        """Further jobs in order of arrival; ``closed``: these are the last ones.

        ``estimated_kind`` is each job's estimated kind when it shares GPUs; None: its own kind.
        """
        cdef int64_t i, n = submit.shape[0]
        cdef int64_t id = self.table.added
        if self.at_pending < self.n_pending:
            raise ValueError("there are jobs that have not arrived yet")
        if n > self.pending_room:
            self.pending = <Job*> memory_grown(self.pending, n, sizeof(Job))
            self.pending_room = n
        for i in range(n):
            job_begin(&self.pending[i], id + i, kind[i], num_gpu[i], tenant[i], submit[i], total[i], weight[i],
                      deadline[i])
            if estimated_kind is not None:
                self.pending[i].estimated_kind = estimated_kind[i]
        self.n_pending, self.at_pending, self.closed = n, 0, closed

    def reprice(self, const double[::1] price, double next_change_s):
        """Prices from now on, $/h for a GPU of each model, until they may change again."""
        cdef int g
        for g in range(self.table.width):
            self.allocation_wanted |= self.price[g] != price[g]
            self.price[g] = price[g]
        self.next_price_s = next_change_s

    def assign(self, const int64_t[::1] first, const int64_t[::1] second, const double[:, ::1] share):
        """The policy's answer: shares by candidate and model; ``second`` is -1 for a job by itself."""
        cdef int64_t i
        cdef int32_t row, mate, g, at
        cdef int32_t w = self.table.width
        cdef ShareAccount* account
        for i in range(first.shape[0]):
            row = self.table.row_of(first[i])
            mate = -1 if second[i] < 0 else self.table.row_of(second[i])
            if row < 0 or (second[i] >= 0 and mate <= row) or share.shape[1] != w:
                raise ValueError(f"row {i} of the allocation names no active job or pair")
            if mate < 0:
                account = &self.table.accounts[row * w]
                self.table.jobs[row].known = True
            else:
                at = self.table.find(row, mate)
                if at < 0:
                    for g in range(w):
                        if share[i, g] > 0 and self.selection.pairs:
                            at = self.table.pair(row, mate)
                            break
                if at < 0:
                    continue
                account = &self.table.shared[at * w]
            for g in range(w):
                account[g].share = share[i, g]

    def advance(self, int64_t budget):
        """Play on, at most ``budget`` rounds; returns why it stopped."""
        with nogil:
            budget = self.run_stages(budget)
        return budget

    # ------------------------------------------------------------------ time

    cdef int run_stages(self, int64_t budget) except -1 nogil:
        """The state machine of a round; returns a Stop when Python must act, the next call continues at that stage."""
        cdef double before_s
        while True:
            if self.stage == AT_TOP:
                if self.at_pending == self.n_pending and not self.closed:
                    return WANT_ARRIVALS
                if self.finished():
                    return DONE
                if self.log.undrained() >= MOST_WAITING:
                    return DRAIN
                if self.quiet == PATIENCE or self.frozen == MOST_FROZEN:
                    return DEADLOCK
                if budget == 0:
                    return PAUSE
                budget -= 1
                before_s = self.now_s
                self.advance_time()
                self.frozen = self.frozen + 1 if self.now_s <= before_s else 0
                self.stage = AT_WORK
                if self.now_s >= self.next_price_s:
                    return PRICE_CHANGE
            if self.stage == AT_WORK:
                self.complete()
                self.moved = False
                self.stage = AT_ARRIVALS
            if self.stage == AT_ARRIVALS:
                self.arrive()
                if self.at_pending == self.n_pending and not self.closed:
                    return WANT_ARRIVALS
                self.max_active = max(self.max_active, self.table.n)
                self.rounds += 1
                self.job_rounds += self.table.n
                self.stage = AT_CHOICE
                if self.allocation_wanted and self.reset_allowed():
                    self.reset()
                    return ASK_POLICY
            self.run_round()
            self.quiet = self.quiet + 1 if self.was_idle and self.leases.n == 0 and not self.moved else 0
            self.stage = AT_TOP

    cdef bint finished(self) noexcept nogil:
        cdef int64_t last = self.last
        if self.now_s >= self.until_s:
            return True
        if self.closed and self.at_pending == self.n_pending and (last < 0 or last > self.table.added):
            last = self.table.added
        return last >= 0 and self.ended >= last - self.first

    cdef void advance_time(self) noexcept nogil:
        """Time goes to the end of the round, or to the next thing that happens."""
        cdef double finish = -INFINITY
        cdef int32_t i
        self.was_idle = self.leases.n == 0
        if not self.was_idle:
            for i in range(self.leases.n):
                finish = max(finish, self.leases.tasks[i].finish_s)
            if not isnan(self.end_s):
                self.start_s = self.end_s
            self.end_s = self.now_s = finish
            return
        self.now_s = self.next_event_s()
        if not self.gap_counts:
            self.start_s = self.end_s = self.now_s
        if not self.endless and self.at_pending == self.n_pending and self.reset_at_zero:
            self.ever_reset = False

    cdef double next_event_s(self) noexcept nogil:
        """Time of the next arrival, or of the next allocation if one is wanted; else the present time."""
        cdef bint coming = self.at_pending < self.n_pending
        cdef double next_s = self.pending[self.at_pending].submit_s if coming else INFINITY
        if self.stale and not coming:
            return self.last_submit_s if self.endless else self.now_s
        if not self.stale and self.allocation_wanted and self.table.n and self.ever_reset:
            next_s = min(next_s, self.reset_s + self.realloc_s)
        return max(self.now_s, next_s) if next_s < INFINITY else self.now_s

    cdef int arrive(self) except -1 nogil:
        cdef Job* new
        while self.at_pending < self.n_pending:
            new = &self.pending[self.at_pending]
            if new.submit_s > self.now_s:
                break
            if self.late_deadlines:
                new.deadline_s += self.now_s - new.submit_s
            self.table.enter(new)
            self.last_submit_s = new.submit_s
            if self.measured:
                self.metrics.arrive(new.submit_s, new.id, new.num_gpu)
            self.at_pending += 1
            self.allocation_wanted = self.moved = True
        return 0

    cdef bint reset_allowed(self) noexcept nogil:
        if not self.ever_reset or (self.reset_at_zero and self.reset_s == 0):
            return True
        if not self.stale and self.now_s >= self.reset_s + self.realloc_s:
            return True  # also where the difference is rounded to less
        return self.now_s - self.reset_s >= self.realloc_s

    cdef void reset(self) noexcept nogil:
        """Settle the accounts of the old shares before a new allocation."""
        self.table.settle(self.now_s - (self.reset_s if self.ever_reset else 0.0), self.selection.pairs)
        self.table.forget_shares()
        self.reset_s, self.ever_reset, self.allocation_wanted, self.moved = self.now_s, True, False, True
        self.calls += 1

    # ------------------------------------------------------------------ progress

    cdef int complete(self) except -1 nogil:
        """Credit the round's work, then remove the jobs that are done."""
        cdef int32_t i
        cdef int32_t ended = 0
        cdef Task* task
        completions_sorted(self.leases.tasks, self.completions, self.spare, self.leases.n, self.selection.one_line)
        for i in range(self.leases.n):
            self.credit(&self.leases.tasks[self.completions[i].task])
        for i in range(self.leases.n):
            task = &self.leases.tasks[i]
            self.charge_time(task)
            ended += self.close_job(task, task.row)
            if task.mate >= 0:
                ended += self.close_job(task, task.mate)
        if ended:
            self.table.compact()
            self.allocation_wanted = True
        return 0

    cdef void charge_time(self, Task* task) noexcept nogil:
        """A task's GPUs were held until it was done, or else until now; a pair has half of the time that both were
        there, the one that stays longer has the rest."""
        cdef Job* job = &self.table.jobs[task.row]
        cdef Job* mate
        cdef double until_s = self.now_s if isnan(job.finish_s) else task.finish_s
        cdef double mate_until_s, both_s
        task.alive = not job.ended
        if task.mate < 0:
            self.bill(task, job, until_s - self.began_s)
            self.wasted_gpu_s += min(task.wasted, (until_s - self.began_s) * task.num_gpu)
            return
        mate = &self.table.jobs[task.mate]
        mate_until_s = self.now_s if isnan(mate.finish_s) else task.finish_s
        task.alive |= not mate.ended
        both_s = min(until_s, mate_until_s) - self.began_s
        self.bill(task, job, until_s - self.began_s - both_s / 2)
        self.bill(task, mate, mate_until_s - self.began_s - both_s / 2)
        self.wasted_gpu_s += min(task.wasted, (max(until_s, mate_until_s) - self.began_s) * task.num_gpu)

    cdef void bill(self, const Task* task, Job* job, double seconds) noexcept nogil:
        """A job had a task's GPUs for so long."""
        job.gpu_s += seconds * task.num_gpu
        if not self.lease_cost:
            job.cost += task.price * seconds * task.num_gpu / 3600

    cdef int close_job(self, Task* task, int32_t row) except -1 nogil:
        """Hand a job that has ended to the ledger; answers whether it has. The last one of a task frees its GPUs."""
        cdef const Job* job = &self.table.jobs[row]
        cdef bint frees = row == (task.row if task.mate < 0 else task.mate) and not task.alive
        cdef bint done = not isnan(job.finish_s)
        if not job.ended:
            return 0
        self.log.close(job)
        if self.measured:
            self.metrics.depart(job.finish_s if done else self.now_s, job.id, done, &self.leases.gpu[task.held],
                                task.num_gpu if frees else 0, 0, 0)
        self.ended += job.id >= self.first and (self.last < 0 or job.id < self.last)
        return 1

    cdef void credit(self, Task* task) noexcept nogil:
        """Add a task's time and steps, or count a failure."""
        cdef double spent = task.finish_s - self.start_s
        cdef int32_t i
        cdef ShareAccount* account
        cdef double* type_time = self.table.type_time
        cdef double* busy_s = self.leases.busy_s
        cdef Job* job = &self.table.jobs[task.row]
        if task.mate < 0:
            account = &self.table.accounts[task.row * self.table.width]
        else:
            account = &self.table.shared[task.pair * self.table.width]
            if self.estimated:
                if account[task.model].ran == NEVER:
                    account[task.model].ran = UNREPORTED
                if not self.selection.mix(job.kind, self.table.jobs[task.mate].kind, task.model):
                    self.allocation_wanted = True  # a wrong guess, for which neither job is to blame
                    return
        if (spent <= 0 and not round_completes(task, self.table.jobs)) or self.starved(job, task.steps) or (
                task.mate >= 0 and self.starved(&self.table.jobs[task.mate], task.mate_steps)
        ):
            self.allocation_wanted = True
            if task.mate < 0 or not self.last_chunk:
                self.fail(job)
            if task.mate >= 0 and not self.last_chunk:
                self.fail(&self.table.jobs[task.mate])
            return
        account[task.model].received += spent
        type_time[task.model] += spent
        for i in range(task.held, task.held + task.num_gpu):
            busy_s[self.leases.gpu[i]] += max(spent - task.wasted / task.num_gpu, 0.0)
        self.gain(job, task, task.steps, spent)
        if task.mate >= 0:
            self.gain(&self.table.jobs[task.mate], task, task.mate_steps, spent)

    cdef void fail(self, Job* job) noexcept nogil:
        job.failures += 1
        job.ended = job.failures == MOST_FAILURES

    cdef bint starved(self, const Job* job, double steps) noexcept nogil:
        """Whether a GPU of the gang has nothing to do: each takes a whole share, the last one what is left."""
        # A job without any steps is complete as soon as it starts.
        return job.total > 0 and (steps <= 0 or (self.last_chunk and job.num_gpu > 1 and steps < job.num_gpu))

    cdef void gain(self, Job* job, const Task* task, double steps, double spent) noexcept nogil:
        job.failures = 0
        job.run += steps
        if self.lease_cost:
            job.cost += self.price[task.model] * spent / 3600 * job.num_gpu
        if job.total - job.run <= 0:
            job.finish_s, job.ended = task.finish_s, True

    # ------------------------------------------------------------------ a round

    cdef int run_round(self) except -1 nogil:
        """Select the jobs of the round, place them and compute their steps."""
        cdef int32_t i
        cdef Task* task
        self.selection.reserve()
        self.selection.choose()
        self.began_s = self.now_s
        for i in range(self.table.n):
            self.table.jobs[i].task = -1
        for i in range(self.leases.n):
            task = &self.leases.tasks[i]
            self.table.jobs[task.row].task = i
            if task.mate >= 0:
                self.table.jobs[task.mate].task = i
                self.table.pair(task.row, task.mate)
        for i in range(self.table.n):
            if self.table.jobs[i].task < 0 and self.table.jobs[i].holds:
                job_waits(&self.table.jobs[i], self.now_s)
        self.leases.place()
        self.leases.count()
        for i in range(self.leases.n):
            self.dispatch(&self.leases.tasks[i])
            if self.recorded:
                self.log.note(self.leases, i, self.rounds - 1, self.now_s)
        return self.measure() if self.measured else 0

    cdef int measure(self) except -1 nogil:
        """Update the metrics with the tasks of this round."""
        cdef int32_t i
        cdef int32_t running = 0
        for i in range(self.leases.n):
            running += 1 + (self.leases.tasks[i].mate >= 0)
        self.metrics.apply_changes(self.now_s)
        self.metrics.count_gpus(self.leases)
        self.metrics.begin_round(self.rounds - 1, running)
        return 0

    cdef void dispatch(self, Task* task) noexcept nogil:
        """Steps of the candidate in this round, and its finish time."""
        cdef double finish_s = 0.0
        cdef Job* job = &self.table.jobs[task.row]
        cdef Job* mate
        task.wasted, task.price = 0.0, self.price[task.model]
        if task.mate < 0:
            task.pair = -1
            task.steps = self.steps_of(job, self.alone[job.kind, task.model], task, &task.finish_s)
            return
        mate = &self.table.jobs[task.mate]
        task.pair = self.table.find(task.row, task.mate)
        task.steps = self.steps_of(job, self.shared[job.kind, mate.kind, task.model], task, &task.finish_s)
        task.mate_steps = self.steps_of(mate, self.shared[mate.kind, job.kind, task.model], task, &finish_s)
        task.finish_s = max(task.finish_s, finish_s)

    cdef double steps_of(self, Job* job, double rate, Task* task, double* finish_s) noexcept nogil:
        """Steps of one job until the round ends or it is complete; ``finish_s`` is the earlier of the two.

        A first start costs nothing. A delay spoils the task's GPUs, in a pair half of them. Where only whole steps are
        done, a job's round ends with the last of them.
        """
        cdef double steps
        cdef double left = job.total - job.run
        cdef double delay_s = 0.0 if task.kept or isnan(job.first_s) else self.restart_s
        task.wasted += delay_s * task.num_gpu / (1 if task.mate < 0 else 2)
        job_stays(job, self.now_s, task.kept)
        steps = rate * (self.round_s - delay_s)
        if self.whole:
            steps = <double> <int64_t> steps
        finish_s[0] = self.now_s + self.round_s
        if not rate > 0:  # a guess that was wrong costs a round
            steps = 0.0
        elif self.whole or steps >= left:
            steps = min(steps, left)
            finish_s[0] = self.now_s + delay_s + steps / rate
            if not self.whole:  # the quotient may be rounded to more than the round
                finish_s[0] = min(finish_s[0], self.now_s + self.round_s)
        job.delayed_s += min(delay_s, finish_s[0] - self.now_s)
        job.rounds += 1
        if isnan(job.first_s):
            job.first_s = self.now_s
        return steps

    cpdef int verify(self) except -1:
        """Table, leases and totals are sound."""
        self.table.verify()
        self.leases.verify()
        if self.measured:
            self.metrics.verify()
        return 0
