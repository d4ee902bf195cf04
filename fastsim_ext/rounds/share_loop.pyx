"""The loop of rounds of shares: shares become priorities, the best candidates run for a round."""

cimport cython
from libc.math cimport INFINITY, NAN, isnan
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from fastsim_ext.rounds.completion_order cimport Completion, completions_sorted
from fastsim_ext.rounds.job_table cimport NEVER, UNREPORTED, Job, JobTable, ShareAccount, job_runs
from fastsim_ext.rounds.leases cimport Task

cdef enum:
    MOST_FAILURES = 5    # rounds in a row without progress, then a job is given up
    MOST_FROZEN = 1000   # rounds in a row in which time stands still


cdef bint round_completes(const Task* task, const Job* jobs) noexcept nogil:
    """Whether a task completes a job, by its steps: the time of the last ones may be lost to rounding."""
    cdef const Job* job = &jobs[task.row]
    cdef const Job* mate = job if task.mate < 0 else &jobs[task.mate]
    return task.steps >= job.total - job.run or (task.mate >= 0 and task.mate_steps >= mate.total - mate.run)


@cython.final
cdef class ShareLoop(RoundLoop):
    """A run in rounds of shares, see ``fastsim.engine.shares.run``."""

    def __init__(self, gpus, alone, shared, fastest, shuffle_state, *, double round_s, double realloc_s, bint endless,
                 quirks, bint pairs, bint shuffled, bint strict, bint one_line, bint estimated=False, **rounds):
        (reserves, self.last_chunk, self.gap_counts, self.whole, self.reset_at_zero, self.stale, self.lease_cost,
         unowed, self.late_deadlines) = quirks
        RoundLoop.__init__(self, JobTable(len(gpus), round_s / 2, 0.0 if unowed else round_s / 2), gpus,
                           round_s=round_s, **rounds)
        self.selection = CandidateSelection(self.table, self.leases, alone, shared, fastest, shuffle_state, pairs=pairs,
                                            shuffled=shuffled, strict=strict, one_line=one_line, reserves=reserves)
        self.alone, self.shared = alone, shared
        self.completions = <Completion*> calloc(self.leases.gpus + 1, sizeof(Completion))
        self.spare = <Completion*> calloc(self.leases.gpus + 1, sizeof(Completion))
        if self.completions == NULL or self.spare == NULL:
            raise MemoryError()
        self.realloc_s, self.endless, self.estimated, self.end_s = realloc_s, endless, estimated, NAN
        self.allocation_wanted = True

    def __dealloc__(self):
        free(self.completions)
        free(self.spare)

    # ------------------------------------------------------------------ outside

    def reprice(self, const double[::1] price, double next_change_s):
        """Prices from now on; another price asks for another allocation."""
        cdef int g
        for g in range(self.table.width):
            self.allocation_wanted |= self.price[g] != price[g]
        RoundLoop.reprice(self, price, next_change_s)

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

    # ------------------------------------------------------------------ time

    cdef bint stuck(self) noexcept nogil:
        return RoundLoop.stuck(self) or self.frozen == MOST_FROZEN

    cdef void advance_time(self) noexcept nogil:
        """Time goes on; count how often it stands still."""
        cdef double before_s = self.now_s
        self.go_on()
        self.frozen = self.frozen + 1 if self.now_s <= before_s else 0

    cdef void go_on(self) noexcept nogil:
        """A round ends with its last task; without tasks, time goes on to what happens next."""
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
        if self.stale and not coming and self.presence is None:
            return self.last_submit_s if self.endless else self.now_s
        if not self.stale and self.allocation_wanted and self.table.n and self.ever_reset:
            next_s = min(next_s, self.reset_s + self.realloc_s)
        if self.presence is not None and self.table.n:  # a node may come back
            next_s = min(next_s, self.presence.next_s())
        return max(self.now_s, next_s) if next_s < INFINITY else self.now_s

    cdef int enter(self, Job* new) except -1 nogil:
        """A job that has arrived asks for an allocation."""
        if self.late_deadlines:
            new.deadline_s += self.now_s - new.submit_s
        self.last_submit_s = new.submit_s
        self.allocation_wanted = self.moved = True
        return self.metrics.arrive(new.submit_s, new.id, new.num_gpu) if self.measured else 0

    cdef void nodes_changed(self) noexcept nogil:
        """Other GPUs ask for another allocation."""
        self.allocation_wanted = self.moved = True

    cdef bint asks(self) except -1 nogil:
        """Whether an allocation is wanted and allowed; the old one is settled then."""
        if not (self.allocation_wanted and self.reset_allowed()):
            return False
        self.reset()
        return True

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
        self.moved = False
        return 0

    cdef void charge_time(self, Task* task) noexcept nogil:
        """A task's GPUs were held until it was done, or else until now; a pair has half of the time that both were
        there, the one that stays longer has the rest."""
        cdef Job* job = &self.table.jobs[task.row]
        cdef Job* mate
        cdef double until_s = self.now_s if isnan(job.finish_s) else task.finish_s
        cdef double mate_until_s, both_s
        task.alive = not job.ended
        if task.id < 0:
            task.wasted = INFINITY  # all of its time
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
        """Close a job if it has ended; answers whether it has. The last one of a task frees its GPUs."""
        cdef const Job* job = &self.table.jobs[row]
        cdef bint frees = row == (task.row if task.mate < 0 else task.mate) and not task.alive
        cdef bint done = not isnan(job.finish_s)
        if not job.ended:
            return 0
        self.close(job)
        if self.measured:
            self.metrics.depart(job.finish_s if done else self.now_s, job.id, done, &self.leases.gpu[task.held],
                                task.num_gpu if frees else 0, 0, 0)
        return 1

    cdef void credit(self, Task* task) noexcept nogil:
        """Add a task's time and steps, or count a failure; nothing if a node of it has gone away."""
        cdef double spent = task.finish_s - self.start_s
        cdef int32_t i
        cdef ShareAccount* account
        cdef double* type_time = self.table.type_time
        cdef double* busy_s = self.leases.busy_s
        cdef Job* job = &self.table.jobs[task.row]
        if self.leases.is_lost(task):
            task.id = -1  # no task of the next round keeps its GPUs
            self.allocation_wanted = True
            return
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
        self.link_tasks()
        for i in range(self.leases.n):
            task = &self.leases.tasks[i]
            if task.mate >= 0:
                self.table.pair(task.row, task.mate)
        self.leases.place()
        for i in range(self.leases.n):
            self.dispatch(&self.leases.tasks[i])
        self.quiet = self.quiet + 1 if self.was_idle and self.leases.n == 0 and not self.moved else 0
        return self.note_round(0, 0)

    cdef void dispatch(self, Task* task) noexcept nogil:
        """Steps of the candidate in this round, and its finish time."""
        cdef double finish_s = 0.0
        cdef Job* job = &self.table.jobs[task.row]
        cdef Job* mate
        task.wasted, task.price = 0.0, self.price[task.model]
        if task.mate < 0:
            task.pair = -1
            task.steps = self.steps_of(job, self.alone[job.kind, task.model], task, &task.finish_s)
        else:
            mate = &self.table.jobs[task.mate]
            task.pair = self.table.find(task.row, task.mate)
            task.steps = self.steps_of(job, self.shared[job.kind, mate.kind, task.model], task, &task.finish_s)
            task.mate_steps = self.steps_of(mate, self.shared[mate.kind, job.kind, task.model], task, &finish_s)
            task.finish_s = max(task.finish_s, finish_s)
        if self.leases.is_lost(task):  # nothing is finished early
            task.finish_s = self.now_s + self.round_s

    cdef double steps_of(self, Job* job, double rate, Task* task, double* finish_s) noexcept nogil:
        """Steps of one job until the round ends or it is complete; ``finish_s`` is the earlier of the two.

        A delay spoils the task's GPUs, in a pair half of them. Where only whole steps are
        done, a job's round ends with the last of them.
        """
        cdef double steps
        cdef double left = job.total - job.run
        cdef double delay_s = job_runs(job, self.now_s, task.kept, self.restart_s)
        task.wasted += delay_s * task.num_gpu / (1 if task.mate < 0 else 2)
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
        return steps
