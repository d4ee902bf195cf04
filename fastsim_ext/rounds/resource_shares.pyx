"""How much of a server a job gets beside its GPUs.

``fair``: as much as its GPUs are part of the server. ``greedy``: what it needs, or it waits. ``tune``: what it needs;
if there is not enough, its fair share; if others took more than theirs, they give it back. ``opt``: as it was told.
"""

cimport cython
from libc.stdint cimport int32_t, uint8_t
from fastsim_ext.rounds.job_table cimport Job
from fastsim_ext.rounds.ordered_jobs cimport RESOURCES, OrderedJob
from fastsim_ext.rounds.server_allocation cimport Server, ServerPart, enough


@cython.final
cdef class ResourceShares:
    """Fills ``seats``, one job after the other."""

    def __init__(self, JobTable table, OrderedJobTable stakes, ServerAllocation seats, const double[:, ::1] step_s__kg,
                 const uint8_t[::1] packed__k, int mechanism, bint raises, bint sweeping):
        self.table, self.stakes, self.seats, self.step_s__kg = table, stakes, seats, step_s__kg
        self.packed__k, self.mechanism, self.raises, self.sweeping = packed__k, mechanism, raises, sweeping

    cdef bint fill(self, int32_t row) noexcept nogil:
        """Give a job its GPUs, on the model on which it is fastest of those with room; answers whether it runs."""
        cdef const Job* gang = &self.table.gangs[row]
        cdef int32_t tried = -1
        cdef int32_t m, best
        cdef double limit = 0.0
        while True:
            best = -1
            for m in range(self.seats.models):
                if (not self.step_s__kg[gang.kind, m] > 0 or self.seats.n_free[m] < gang.num_gpu
                        or self.step_s__kg[gang.kind, m] < limit
                        or (self.step_s__kg[gang.kind, m] == limit and m <= tried)):
                    continue
                if best < 0 or self.step_s__kg[gang.kind, m] < self.step_s__kg[gang.kind, best]:
                    best = m
            if best < 0:
                return False
            if self.fill_model(row, best):
                return True
            limit, tried = self.step_s__kg[gang.kind, best], best

    cdef bint keep(self, int32_t row, int32_t model, const int32_t* gpus) noexcept nogil:
        """Give a job the GPUs that it had, and beside them what the mechanism says; answers whether that is there."""
        cdef OrderedJob* stake = &self.stakes.stakes[row]
        cdef int32_t num_gpu = self.table.gangs[row].num_gpu
        self.seats.retake(gpus, num_gpu)
        stake.plain = self.mechanism == FAIR
        if self.mechanism == TUNE:
            return self.keep_tuned(row, model)
        if self.mechanism == OPT:
            self.commit_told(row, model)
        else:
            self.seats.commit(stake, row, model, num_gpu, NULL if stake.plain else stake.need)
        return True

    cdef void commit_told(self, int32_t row, int32_t model) noexcept nogil:
        """Take the seats that are picked; what the job gets beside them was told, and no server counts it."""
        cdef double[RESOURCES] nothing
        cdef double[RESOURCES] told
        cdef OrderedJob* stake = &self.stakes.stakes[row]
        cdef int32_t r
        for r in range(RESOURCES):
            nothing[r], told[r] = 0.0, stake.given[r]
        self.seats.commit(stake, row, model, self.table.gangs[row].num_gpu, nothing)
        for r in range(RESOURCES):
            stake.given[r] = told[r]

    cdef bint fill_model(self, int32_t row, int32_t model) noexcept nogil:
        cdef double[RESOURCES] nothing
        cdef OrderedJob* stake = &self.stakes.stakes[row]
        cdef int32_t num_gpu = self.table.gangs[row].num_gpu
        cdef bint packed = self.packed__k[self.table.gangs[row].kind]
        cdef int32_t r
        stake.plain = False
        if self.mechanism == TUNE:
            return self.tune(row, model)
        if self.mechanism == GREEDY:
            if not self.seats.propose(model, num_gpu, stake.need, packed):
                return False
            self.seats.commit(stake, row, model, num_gpu, stake.need)
            return True
        for r in range(RESOURCES):
            nothing[r] = 0.0
        self.seats.propose(model, num_gpu, nothing, packed)
        stake.plain = self.mechanism == FAIR
        if stake.plain:
            self.seats.commit(stake, row, model, num_gpu, NULL)
        else:
            self.commit_told(row, model)
        return True

    # ------------------------------------------------------------------ tune

    cdef bint tune(self, int32_t row, int32_t model) noexcept nogil:
        cdef double[RESOURCES] need
        cdef OrderedJob* stake = &self.stakes.stakes[row]
        cdef int32_t num_gpu = self.table.gangs[row].num_gpu
        cdef bint packed = self.packed__k[self.table.gangs[row].kind]
        cdef int32_t r
        cdef bint fits
        for r in range(RESOURCES):
            need[r] = stake.need[r]
        fits = self.seats.propose(model, num_gpu, need, packed)
        if not fits and self.lowered(stake, model, num_gpu, need, self.raises):
            stake.speedup = 1.0
            fits = self.seats.propose(model, num_gpu, need, packed)
        if not fits:
            self.reclaim(model, num_gpu, need)
            fits = self.seats.propose(model, num_gpu, need, packed)
        if fits:
            self.seats.commit(stake, row, model, num_gpu, need)
        return fits

    cdef bint keep_tuned(self, int32_t row, int32_t model) noexcept nogil:
        """As ``tune``, on the GPUs that are picked; if not even that is possible, the job is as it was."""
        cdef double[RESOURCES] need
        cdef OrderedJob* stake = &self.stakes.stakes[row]
        cdef int32_t num_gpu = self.table.gangs[row].num_gpu
        cdef int32_t i, r
        cdef bint fits
        for r in range(RESOURCES):
            need[r] = stake.need[r]
        fits = self.seats.holds(num_gpu, need)
        if not fits and self.lowered(stake, model, num_gpu, need, self.raises):
            stake.speedup = 1.0
            fits = self.seats.holds(num_gpu, need)
        if not fits:
            self.reclaims += 1
            for i in range(self.seats.n_picks):
                self.reclaim_from(self.seats.picks[i].server, num_gpu, self.seats.picks[i].num_gpu, need)
            fits = self.seats.holds(num_gpu, need)
        if fits:
            self.seats.commit(stake, row, model, num_gpu, need)
        else:
            stake.speedup = stake.own_speedup
        return fits

    cdef bint lowered(self, const OrderedJob* stake, int32_t model, int32_t num_gpu, double* need,
                      bint full) noexcept nogil:
        """Turn a job's own need into its fair share; False, and nothing changes, if it needs no more than that.

        ``full``: it gets all of its share, also of what it needs less of.
        """
        cdef const double* fair = self.seats.servers[self.seats.base[model]].fair
        cdef bint above = False
        cdef int32_t r
        for r in range(RESOURCES):
            need[r] = stake.need[r]
            above |= not enough(fair[r] * num_gpu, need[r])
        if above:
            for r in range(RESOURCES):
                if full or need[r] > fair[r] * num_gpu:
                    need[r] = fair[r] * num_gpu
        return above

    cdef void reclaim(self, int32_t model, int32_t num_gpu, const double* need) noexcept nogil:
        """Servers with enough free GPUs for the gang take back what others have above their fair share."""
        cdef int32_t left = num_gpu
        cdef int32_t s, part, free_gpus
        self.reclaims += 1
        if num_gpu > 1:
            for s in range(self.seats.base[model], self.seats.base[model + 1]):
                if self.seats.servers[s].n_free >= num_gpu:
                    self.reclaim_from(s, num_gpu, num_gpu, need)
                    return
        for free_gpus in range(1, self.seats.width + 1):
            for s in range(self.seats.base[model], self.seats.base[model + 1]):
                if self.seats.servers[s].n_free == free_gpus:
                    part = min(left, free_gpus)
                    self.reclaim_from(s, num_gpu, part, need)
                    left -= part
                    if left == 0:
                        return

    cdef void reclaim_from(self, int32_t server, int32_t num_gpu, int32_t part, const double* need) noexcept nogil:
        """Lower jobs of one server to their fair shares until ``part`` GPUs' share of the need is there."""
        cdef double[RESOURCES] lack
        cdef double excess
        cdef bint lacking = False
        cdef bint gives
        cdef int32_t i, r
        cdef const ServerPart* seat
        cdef Server* at = &self.seats.servers[server]
        for r in range(RESOURCES):
            lack[r] = need[r] * part / num_gpu
            lack[r] = 0.0 if enough(at.left[r], lack[r]) else lack[r] - at.left[r]
            lacking |= lack[r] > 0
        if not lacking:
            return
        self.sort(server)
        for i in range(at.seats):
            if not lacking:
                return
            seat = &self.seats.seats[self.seats.listed[server * self.seats.width + i]]
            lacking = gives = False
            for r in range(RESOURCES):
                excess = at.fair[r] * seat.num_gpu
                excess = 0.0 if enough(excess, seat.share[r]) else seat.share[r] - excess
                gives |= excess > 0 and lack[r] > 0
                lack[r] = 0.0 if enough(excess, lack[r]) else lack[r] - excess
                lacking |= lack[r] > 0
            if gives or self.sweeping:
                self.demote(seat.row)

    cdef bint demote(self, int32_t row) noexcept nogil:
        """A job that runs falls back to its fair share, on the same GPUs; a need below that stays as it is."""
        cdef double[RESOURCES] need
        cdef OrderedJob* stake = &self.stakes.stakes[row]
        cdef int32_t num_gpu = self.table.gangs[row].num_gpu
        cdef bint above = self.lowered(stake, stake.model, num_gpu, need, self.raises)
        if self.raises and not self.seats.room_to_reshare(stake, num_gpu, need):
            self.lowered(stake, stake.model, num_gpu, need, False)
        if above:
            stake.speedup = 1.0
        stake.plain = True
        self.seats.reshare(stake, num_gpu, need)
        self.demotions += 1
        return above

    cdef void sort(self, int32_t server) noexcept nogil:
        """Those on few servers first, then those with much CPU for each GPU, then with much memory."""
        cdef int32_t* listed = &self.seats.listed[server * self.seats.width]
        cdef int32_t i, j, seat
        for i in range(1, self.seats.servers[server].seats):
            seat = listed[i]
            j = i
            while j > 0 and self.before(self.seats.seats[seat].row, self.seats.seats[listed[j - 1]].row):
                listed[j] = listed[j - 1]
                j -= 1
            listed[j] = seat

    cdef bint before(self, int32_t row, int32_t other) noexcept nogil:
        cdef const OrderedJob* a = &self.stakes.stakes[row]
        cdef const OrderedJob* b = &self.stakes.stakes[other]
        cdef int32_t a_gpus = self.table.gangs[row].num_gpu
        cdef int32_t b_gpus = self.table.gangs[other].num_gpu
        if a.seats != b.seats:
            return a.seats < b.seats
        if a.given[0] / a_gpus != b.given[0] / b_gpus:
            return a.given[0] / a_gpus > b.given[0] / b_gpus
        return a.given[1] / a_gpus > b.given[1] / b_gpus
