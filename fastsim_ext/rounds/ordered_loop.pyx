"""The loop of a run in ordered rounds: jobs arrive, are put in order, get GPUs and all that goes with them.

Rounds begin at fixed times, each with empty servers; a round without jobs is left out. A job that has its GPUs works
for a round and gives them back at its end.
"""

cimport cython
from libc.math cimport INFINITY, ceil, floor, isnan, rint
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp
from cpython.bytes cimport PyBytes_FromStringAndSize
from fastsim_ext.memory cimport memory_grown
from fastsim_ext.rounds.cluster_metrics cimport ClusterMetrics
from fastsim_ext.rounds.job_table cimport Job, gang_stays, gang_waits, job_begin
from fastsim_ext.rounds.leases cimport Task
from fastsim_ext.rounds.ordered_jobs cimport RESOURCES, OrderedJob
from fastsim_ext.rounds.resource_shares cimport FAIR, OPT, TUNE
from fastsim_ext.rounds.server_allocation cimport ServerPart
from fastsim_ext.rounds.share_loop cimport ASK, AT_ARRIVALS, AT_CHOICE, AT_TOP, DONE, DRAIN, HUNGRY, PAUSE, PRICE, STUCK

cdef enum:
    MOST_WAITING = 65536               # records before they must be drained
    PATIENCE = 3         # rounds in which nothing can happen


@cython.final
cdef class OrderedLoop:
    """A run; ``advance`` goes on until somebody outside has to do something, see ``fastsim.engine.orders.run``."""

    def __init__(self, gpus, servers, cap__sr, base, need__kr, speedup__k, step_s__kg, terms, level_s, packed__k, *,
                 int mechanism, bint narrow, bint sticky, bint blocking, double admit, double round_s, double begin_s,
                 double restart_s, double until_s, double starving_s, int64_t first, int64_t last, bint recorded,
                 quirks, ClusterMetrics gauge=None):
        import numpy as np
        cdef bint raises, sweeping
        raises, sweeping, self.whole, self.lease_end, self.gap_ends, self.stale_speedup = quirks
        self.table, self.leases, self.ledger = JobTable(len(gpus), round_s / 2), Leases(gpus), RoundLog()
        self.stakes, self.seats = OrderedJobTable(terms, level_s), ServerAllocation(servers, cap__sr, base)
        self.portions = ResourceShares(self.table, self.stakes, self.seats, step_s__kg, packed__k,
                                       mechanism, raises, sweeping)
        self.need__kr, self.speedup__k, self.step_s__kg = need__kr, speedup__k, step_s__kg
        self.gauge, self.gauged, self.price = gauge, gauge is not None, np.zeros(len(gpus))
        self.round_s, self.begin_s, self.restart_s, self.until_s = round_s, begin_s, restart_s, until_s
        self.starving_s, self.narrow, self.sticky, self.blocking = starving_s, narrow, sticky, blocking
        self.admitted_gpus = admit * self.seats.gpus
        self.first, self.last, self.recorded = first, last, recorded
        self.now_s, self.end_s, self.next_price_s = begin_s, begin_s, INFINITY
        self.yard.plain, self.yard.gpus = mechanism == FAIR, self.seats.gpus
        self.yard.cpu_milli, self.yard.memory_mib = sum(cap__sr[:, 0]), sum(cap__sr[:, 1])

    def __dealloc__(self):
        free(self.pending)
        free(self.chosen)
        free(self.records)

    # ------------------------------------------------------------------ outside

    def feed(self, const double[::1] submit, const int32_t[::1] kind, const int32_t[::1] num_gpu,
             const double[::1] total, const double[::1] weight, const double[::1] deadline,
             const int32_t[::1] tenant, bint closed):
        """Further jobs in order of arrival; ``closed`` says that there are no more."""
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
        self.n_pending, self.at_pending, self.closed = n, 0, closed

    def reprice(self, const double[::1] price, double next_change_s):
        """Prices from now on, $/h for a GPU of each model, until they may change again."""
        cdef int g
        for g in range(self.table.width):
            self.price[g] = price[g]
        self.next_price_s = next_change_s

    def asked(self):
        """Rows of the jobs that run in this round, in their order, if somebody outside says what they get."""
        return [self.chosen[i] for i in range(self.n_chosen)]

    def tell(self, const double[:, ::1] need__jr, const double[::1] speedup__j):
        """What each of those jobs gets, and how fast it is with that."""
        cdef int32_t i, r
        cdef OrderedJob* stake
        if need__jr.shape[0] != self.n_chosen or need__jr.shape[1] != RESOURCES or speedup__j.shape[0] != self.n_chosen:
            raise ValueError(f"{need__jr.shape[0]} rows, expected {self.n_chosen}")
        for i in range(self.n_chosen):
            stake = &self.stakes.stakes[self.chosen[i]]
            stake.speedup = speedup__j[i]
            for r in range(RESOURCES):
                stake.given[r] = need__jr[i, r]

    def advance(self, int64_t budget):
        """Play on, at most ``budget`` rounds; returns why it stopped."""
        with nogil:
            budget = self.play(budget)
        return budget

    def drained(self):
        """Records of rounds since the last call, as bytes."""
        part = PyBytes_FromStringAndSize(<char*> self.records, self.n_records * sizeof(RoundRecord))
        self.n_records = 0
        return part

    # ------------------------------------------------------------------ time

    cdef int play(self, int64_t budget) except -1 nogil:
        """The stages of a round in their order; each one that needs help from outside is left by returning."""
        while True:
            if self.stage == AT_TOP:
                if self.at_pending == self.n_pending and not self.closed:
                    return HUNGRY
                if self.finished():
                    return DONE
                if self.ledger.waiting() + self.n_records >= MOST_WAITING:
                    return DRAIN
                if self.quiet == PATIENCE:
                    return STUCK
                if budget == 0:
                    return PAUSE
                budget -= 1
                self.tick()
                self.stage = AT_ARRIVALS
                if self.now_s >= self.next_price_s:
                    return PRICE
            if self.stage == AT_ARRIVALS:
                self.arrive()
                if self.at_pending == self.n_pending and not self.closed:
                    return HUNGRY
                self.max_active = max(self.max_active, self.table.n)
                self.rounds += 1
                self.job_rounds += self.table.n
                self.line_up()
                self.stage = AT_CHOICE
                if self.portions.mechanism == OPT:
                    self.calls += 1
                    return ASK
            self.run_round()
            self.settle()
            self.stage = AT_TOP

    cdef bint finished(self) noexcept nogil:
        cdef int64_t last = self.last
        if self.now_s >= self.until_s:
            return True
        if self.gap_ends and last < 0 and self.rounds and self.table.n == 0 and (
                self.at_pending == self.n_pending or self.pending[self.at_pending].submit_s > self.now_s):
            return True
        if self.closed and self.at_pending == self.n_pending and (last < 0 or last > self.table.added):
            last = self.table.added
        return last >= 0 and self.ended >= last - self.first

    cdef void tick(self) noexcept nogil:
        """Time goes on to the first round in which there is a job."""
        cdef double next_s
        if self.table.n or self.at_pending == self.n_pending:
            return
        next_s = self.pending[self.at_pending].submit_s
        if next_s > self.now_s:
            self.now_s = self.begin_s + ceil((next_s - self.begin_s) / self.round_s) * self.round_s

    cdef int arrive(self) except -1 nogil:
        cdef Job* new
        cdef OrderedJob stake
        if self.gauged:
            self.tell_gauge()
        while self.at_pending < self.n_pending:
            new = &self.pending[self.at_pending]
            if new.submit_s > self.now_s or not self.admits(new):
                break
            stake = self.fresh(new)
            self.table.enter(new)
            self.stakes.enter(&stake)
            self.asked_gpus += new.num_gpu
            self.at_pending += 1
            self.quiet = 0
        return 0

    cdef int tell_gauge(self) except -1 nogil:
        """Tell the metrics who has come, also of jobs that are not let in yet."""
        cdef int64_t i
        cdef const Job* new
        for i in range(self.at_pending, self.n_pending):
            new = &self.pending[i]
            if new.submit_s > self.now_s:
                break
            if new.id >= self.told:
                self.gauge.arrive(new.submit_s, new.id, new.num_gpu)
                self.told = new.id + 1
        return 0

    cdef bint admits(self, const Job* gang) noexcept nogil:
        """Whether there is room for what the job asks for; the first one always comes in."""
        return self.table.n == 0 or self.asked_gpus + gang.num_gpu <= self.admitted_gpus

    cdef OrderedJob fresh(self, const Job* gang) noexcept nogil:
        """The stake of a job that has just arrived."""
        cdef OrderedJob stake
        cdef int32_t r, g
        for r in range(RESOURCES):
            stake.need[r] = self.need__kr[gang.kind, r]
            stake.given[r] = 0.0
        stake.step_s = INFINITY
        for g in range(self.table.width):
            if self.step_s__kg[gang.kind, g] > 0:
                stake.step_s = min(stake.step_s, self.step_s__kg[gang.kind, g])
        stake.own_speedup = stake.speedup = self.speedup__k[gang.kind]
        stake.attained_s, stake.last_s = 0.0, gang.submit_s
        stake.priority, stake.model, stake.seat, stake.seats, stake.plain = 0, -1, -1, 0, False
        return stake

    # ------------------------------------------------------------------ order

    cdef int line_up(self) except -1 nogil:
        """Put the jobs in order, and name those that are served."""
        cdef int32_t i
        cdef OrderedJob* stake
        for i in range(self.table.n):
            stake = &self.stakes.stakes[i]
            stake.seat, stake.seats = -1, 0
            if self.now_s - stake.last_s > self.starving_s:
                stake.priority = 1
            if not self.stale_speedup:
                stake.speedup = stake.own_speedup
        self.yard.now_s = self.now_s
        self.stakes.arrange(self.table, &self.yard)
        for i in range(self.table.n):
            self.stakes.stakes[i].speedup = self.stakes.stakes[i].own_speedup
        if self.table.n > self.chosen_room:
            self.chosen = <int32_t*> memory_grown(self.chosen, 2 * self.table.n, sizeof(int32_t))
            self.chosen_room = 2 * self.table.n
        self.choose()
        return 0

    cdef void choose(self) noexcept nogil:
        """All jobs in order; or only those whose GPUs are there, and with ``tune`` the largest gangs first."""
        cdef int32_t i, j, row
        cdef int32_t left = self.seats.gpus
        cdef bint only = self.narrow or self.portions.mechanism == OPT
        self.n_chosen = 0
        for i in range(self.table.n):
            row = self.stakes.order[i]
            if only:
                if self.table.gangs[row].num_gpu > left:
                    continue
                left -= self.table.gangs[row].num_gpu
            self.chosen[self.n_chosen] = row
            self.n_chosen += 1
        if not (self.narrow and self.portions.mechanism == TUNE):
            return
        for i in range(1, self.n_chosen):
            row = self.chosen[i]
            j = i
            while j > 0 and self.table.gangs[self.chosen[j - 1]].num_gpu < self.table.gangs[row].num_gpu:
                self.chosen[j] = self.chosen[j - 1]
                j -= 1
            self.chosen[j] = row

    # ------------------------------------------------------------------ a round

    cdef int run_round(self) except -1 nogil:
        """Seat the jobs in their order and set those with a seat to work."""
        cdef int32_t i
        cdef bint moved = False
        cdef Task* task
        self.leases.reserve(self.table.n)
        self.leases.begin()
        self.seats.reserve(self.table.n)
        self.seats.clear()
        self.seat_all()
        for i in range(self.table.n):
            self.table.gangs[i].task = -1
        for i in range(self.leases.n):
            task = &self.leases.tasks[i]
            self.table.gangs[task.row].task = i
            self.seat_gpus(task, &self.stakes.stakes[task.row])
            self.work(task)
            moved |= task.steps > 0
        for i in range(self.table.n):
            if self.table.gangs[i].task < 0 and self.table.gangs[i].holds:
                gang_waits(&self.table.gangs[i], self.now_s)
        self.leases.count()
        for i in range(self.leases.n):
            if self.recorded:
                self.ledger.note(self.leases, i, self.rounds - 1, self.now_s)
        self.quiet = self.quiet + 1 if not moved and (
            self.at_pending == self.n_pending or self.pending[self.at_pending].submit_s <= self.now_s) else 0
        return self.measure()

    cdef void seat_all(self) noexcept nogil:
        """Those that keep their GPUs first, then all others in their order."""
        cdef int32_t i, row, left
        cdef bint shut = False
        cdef Job* gang
        if self.sticky:
            left = self.seats.gpus
            for i in range(self.n_chosen):
                row = self.chosen[i]
                gang = &self.table.gangs[row]
                gang.taken = gang.num_gpu <= left and (not shut or self.keeps(gang))
                if gang.taken:
                    left -= gang.num_gpu
                    if self.keeps(gang):
                        gang.taken = self.portions.keep(row, self.leases.last[gang.task].model,
                                                        &self.leases.last_gpu[self.leases.last[gang.task].held])
                        if gang.taken:
                            self.begin_task(i, row)
                else:
                    shut |= self.blocking
        shut = False
        for i in range(self.n_chosen):
            row = self.chosen[i]
            gang = &self.table.gangs[row]
            if self.sticky and gang.taken and self.keeps(gang):
                continue
            if not shut and self.portions.fill(row):
                self.begin_task(i, row)
            else:
                shut |= self.blocking

    cdef bint keeps(self, const Job* gang) noexcept nogil:
        """Whether the job had GPUs in the last round."""
        return gang.num_gpu > 0 and gang.task >= 0 and self.leases.last[gang.task].id == gang.id

    cdef void begin_task(self, int32_t place, int32_t row) noexcept nogil:
        """Note that a job has its seats."""
        cdef const Job* gang = &self.table.gangs[row]
        cdef Task* task = &self.leases.tasks[self.leases.n]
        self.leases.n += 1
        task.id, task.row, task.num_gpu, task.model = gang.id, row, gang.num_gpu, self.stakes.stakes[row].model
        task.mate = task.couple = -1
        task.mate_id = -1
        task.priority, task.deficit = place, 0.0
        task.before = gang.task

    cdef void seat_gpus(self, Task* task, const OrderedJob* stake) noexcept nogil:
        """List the task's GPUs, and see whether it had the same ones."""
        cdef int32_t at = stake.seat
        cdef int32_t gpu
        cdef uint64_t bits
        cdef const ServerPart* seat
        task.held = self.leases.n_held
        while at >= 0:
            seat = &self.seats.seats[at]
            bits, gpu = seat.gpus, self.seats.servers[seat.server].first
            while bits:
                if bits & 1:
                    self.leases.gpu[self.leases.n_held] = gpu
                    self.leases.n_held += 1
                bits >>= 1
                gpu += 1
            at = seat.next
        task.kept = task.before >= 0 and self.leases.last[task.before].num_gpu == task.num_gpu and memcmp(
            &self.leases.gpu[task.held], &self.leases.last_gpu[self.leases.last[task.before].held],
            task.num_gpu * sizeof(int32_t)
        ) == 0

    cdef void work(self, Task* task) noexcept nogil:
        """What the job does in this round, and when it is done."""
        cdef Job* gang = &self.table.gangs[task.row]
        cdef OrderedJob* stake = &self.stakes.stakes[task.row]
        cdef double delay_s = 0.0 if task.kept or isnan(gang.first_s) else self.restart_s
        cdef double step_s = self.step_s__kg[gang.kind, task.model]
        cdef double left = gang.total - gang.run
        cdef double spent_s = self.round_s
        cdef double* busy_s = self.leases.busy_s
        cdef int32_t i
        if not stake.plain:
            step_s /= stake.speedup
        task.steps = (self.round_s - delay_s) / step_s
        if self.whole:
            task.steps = floor(task.steps)
        task.finish_s = self.now_s + self.round_s
        gang_stays(gang, self.now_s, task.kept)
        if task.steps >= left:
            task.steps = left
            if not self.lease_end:
                spent_s = min(spent_s, delay_s + left * step_s)
                task.finish_s = self.now_s + spent_s
            gang.run, gang.finish_s, gang.ended = gang.total, task.finish_s, True
        else:
            gang.run += task.steps
        gang.rounds += 1
        if isnan(gang.first_s):
            gang.first_s = self.now_s
        gang.cost += self.price[task.model] * spent_s / 3600 * gang.num_gpu
        gang.gpu_s += spent_s * gang.num_gpu
        self.spoilt_gpu_s += min(delay_s, spent_s) * gang.num_gpu
        stake.attained_s += self.round_s
        stake.last_s = self.now_s + self.round_s
        for i in range(task.held, task.held + task.num_gpu):
            busy_s[self.leases.gpu[i]] += spent_s

    cdef int measure(self) except -1 nogil:
        """Note what the round looks like, and tell the metrics."""
        cdef int32_t i
        cdef int64_t cpu_milli = 0
        cdef int64_t memory_mib = 0
        cdef RoundRecord* turn
        cdef const OrderedJob* stake
        if self.n_records == self.record_room:
            self.records = <RoundRecord*> memory_grown(self.records, 2 * self.record_room + 64, sizeof(RoundRecord))
            self.record_room = 2 * self.record_room + 64
        turn = &self.records[self.n_records]
        self.n_records += 1
        turn[0] = RoundRecord(
            self.rounds - 1, self.table.n, self.leases.n, self.leases.n_held, 0,
            self.now_s, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        )
        for i in range(self.leases.n):
            stake = &self.stakes.stakes[self.leases.tasks[i].row]
            turn.at_fair += stake.speedup == 1.0
            turn.cpu_alloc += stake.given[0]
            turn.memory_alloc += stake.given[1]
            cpu_milli += <int64_t> rint(stake.given[0])
            memory_mib += <int64_t> rint(stake.given[1])
            turn.cpu_used += min(stake.given[0], stake.need[0])
            turn.memory_used += min(stake.given[1], stake.need[1])
            turn.cpu_demand += stake.need[0]
            turn.memory_demand += stake.need[1]
        if self.gauged:
            self.gauge.follow(self.now_s)
            self.gauge.see(self.leases)
            self.gauge.charge(cpu_milli, memory_mib)
            self.gauge.note(self.rounds - 1, self.leases.n)
        return 0

    cdef int settle(self) except -1 nogil:
        """The round is over: jobs that are done leave."""
        cdef int32_t i
        cdef bint gone = False
        cdef const Job* gang
        for i in range(self.leases.n):
            gang = &self.table.gangs[self.leases.tasks[i].row]
            self.leases.tasks[i].alive = not gang.ended
            if not gang.ended:
                continue
            gone = True
            self.asked_gpus -= gang.num_gpu
            self.done_s = max(self.done_s, gang.finish_s)
            self.ledger.close(gang)
            if self.gauged:
                self.hand_back(&self.leases.tasks[i])
            self.ended += gang.id >= self.first and (self.last < 0 or gang.id < self.last)
        if gone:
            self.stakes.compact(self.table)
            self.table.compact()
        self.now_s += self.round_s
        self.end_s = self.now_s if self.lease_end or self.table.n else self.done_s
        return 0

    cdef int hand_back(self, const Task* task) except -1 nogil:
        """A job that is done frees its GPUs and all that goes with them."""
        cdef const Job* gang = &self.table.gangs[task.row]
        cdef const OrderedJob* stake = &self.stakes.stakes[task.row]
        return self.gauge.depart(gang.finish_s, gang.id, True, &self.leases.gpu[task.held], task.num_gpu,
                                 <int64_t> rint(stake.given[0]), <int64_t> rint(stake.given[1]))

    cpdef int verify(self) except -1:
        """Tables, seats and totals are sound."""
        cdef int32_t i
        self.table.verify()
        assert self.stakes.n == self.table.n, f"{self.stakes.n} stakes of {self.table.n} jobs"
        assert sorted(self.stakes.ordered()) == list(range(self.table.n)), "the order has lost a job"
        for i in range(self.table.n):
            assert self.stakes.stakes[i].speedup >= 0, f"row {i} goes backwards"
        self.seats.verify()
        self.leases.verify()
        if self.gauged:
            self.gauge.verify()
        return 0
