"""CPU, memory and storage of a server that a job gets beside its GPUs.

``fair``: as much as its GPUs are part of the server. ``greedy``: what it needs, or it waits. ``tune``: what it needs;
if there is not enough, its fair share; jobs with more than theirs give it back. ``opt``: the amounts already chosen.
"""

cimport cython
from libc.stdint cimport int32_t, uint8_t
from fastsim_ext.rounds.job_table cimport Job
from fastsim_ext.rounds.ordered_jobs cimport RESOURCES, OrderedJob
from fastsim_ext.rounds.server_allocation cimport Server, ServerPart, enough


@cython.final
cdef class ResourceShares:
    """Fills ``allocation``, one job after the other."""

    def __init__(self, JobTable table, OrderedJobTable ordered_jobs, ServerAllocation allocation,
                 const double[:, ::1] step_s__kg, const uint8_t[::1] packed__k, int mechanism, bint raises,
                 bint sweeping):
        self.table, self.ordered_jobs, self.allocation, self.step_s__kg = table, ordered_jobs, allocation, step_s__kg
        self.packed__k, self.mechanism, self.raises, self.sweeping = packed__k, mechanism, raises, sweeping

    cdef bint allot(self, int32_t row) noexcept nogil:
        """Give a job its GPUs, on the model on which it is fastest of those with room; returns whether it runs."""
        cdef const Job* job = &self.table.jobs[row]
        cdef int32_t tried = -1
        cdef int32_t m, best
        cdef double limit = 0.0
        while True:
            best = -1
            for m in range(self.allocation.models):
                if (not self.step_s__kg[job.kind, m] > 0 or self.allocation.n_free[m] < job.num_gpu
                        or self.step_s__kg[job.kind, m] < limit
                        or (self.step_s__kg[job.kind, m] == limit and m <= tried)):
                    continue
                if best < 0 or self.step_s__kg[job.kind, m] < self.step_s__kg[job.kind, best]:
                    best = m
            if best < 0:
                return False
            if self.allot_model(row, best):
                return True
            limit, tried = self.step_s__kg[job.kind, best], best

    cdef bint allot_again(self, int32_t row, int32_t model, const int32_t* gpus) noexcept nogil:
        """Give a job its last GPUs and its share of other resources by the mechanism; whether there is enough."""
        cdef OrderedJob* entry = &self.ordered_jobs.entries[row]
        cdef int32_t num_gpu = self.table.jobs[row].num_gpu
        cdef int32_t i
        for i in range(num_gpu):
            if self.allocation.is_absent(&self.allocation.servers[self.allocation.server_of[gpus[i]]]):
                return False
        self.allocation.take_again(gpus, num_gpu)
        entry.plain = self.mechanism == FAIR
        if self.mechanism == TUNE:
            return self.tune_again(row, model)
        if self.mechanism == OPT:
            self.commit_chosen(row, model)
        else:
            self.allocation.commit(entry, row, model, num_gpu, NULL if entry.plain else entry.need)
        return True

    cdef void commit_chosen(self, int32_t row, int32_t model) noexcept nogil:
        """Take the picked GPUs; other resources are set by the chooser and not deducted from servers."""
        cdef double[RESOURCES] nothing
        cdef double[RESOURCES] chosen
        cdef OrderedJob* entry = &self.ordered_jobs.entries[row]
        cdef int32_t r
        for r in range(RESOURCES):
            nothing[r], chosen[r] = 0.0, entry.share[r]
        self.allocation.commit(entry, row, model, self.table.jobs[row].num_gpu, nothing)
        for r in range(RESOURCES):
            entry.share[r] = chosen[r]

    cdef bint allot_model(self, int32_t row, int32_t model) noexcept nogil:
        cdef double[RESOURCES] nothing
        cdef OrderedJob* entry = &self.ordered_jobs.entries[row]
        cdef int32_t num_gpu = self.table.jobs[row].num_gpu
        cdef bint packed = self.packed__k[self.table.jobs[row].kind]
        cdef int32_t r
        entry.plain = False
        if self.mechanism == TUNE:
            return self.tune(row, model)
        if self.mechanism == GREEDY:
            if not self.allocation.propose(model, num_gpu, entry.need, packed):
                return False
            self.allocation.commit(entry, row, model, num_gpu, entry.need)
            return True
        for r in range(RESOURCES):
            nothing[r] = 0.0
        self.allocation.propose(model, num_gpu, nothing, packed)
        if self.allocation.n_picks == 0:  # a job without GPUs, and no server is there
            return False
        entry.plain = self.mechanism == FAIR
        if entry.plain:
            self.allocation.commit(entry, row, model, num_gpu, NULL)
        else:
            self.commit_chosen(row, model)
        return True

    # ------------------------------------------------------------------ tune

    cdef bint tune(self, int32_t row, int32_t model) noexcept nogil:
        cdef double[RESOURCES] need
        cdef OrderedJob* entry = &self.ordered_jobs.entries[row]
        cdef int32_t num_gpu = self.table.jobs[row].num_gpu
        cdef bint packed = self.packed__k[self.table.jobs[row].kind]
        cdef int32_t r
        cdef bint fits
        for r in range(RESOURCES):
            need[r] = entry.need[r]
        fits = self.allocation.propose(model, num_gpu, need, packed)
        if not fits and self.fair_need(entry, model, num_gpu, need, self.raises):
            entry.speedup = 1.0
            fits = self.allocation.propose(model, num_gpu, need, packed)
        if not fits:
            self.reclaim(model, num_gpu, need)
            fits = self.allocation.propose(model, num_gpu, need, packed)
        if fits:
            self.allocation.commit(entry, row, model, num_gpu, need)
        return fits

    cdef bint tune_again(self, int32_t row, int32_t model) noexcept nogil:
        """As ``tune``, on the GPUs that are picked; if that is impossible, the job stays as it was."""
        cdef double[RESOURCES] need
        cdef OrderedJob* entry = &self.ordered_jobs.entries[row]
        cdef int32_t num_gpu = self.table.jobs[row].num_gpu
        cdef int32_t i, r
        cdef bint fits
        for r in range(RESOURCES):
            need[r] = entry.need[r]
        fits = self.allocation.holds(num_gpu, need)
        if not fits and self.fair_need(entry, model, num_gpu, need, self.raises):
            entry.speedup = 1.0
            fits = self.allocation.holds(num_gpu, need)
        if not fits:
            self.reclaims += 1
            for i in range(self.allocation.n_picks):
                self.reclaim_from(self.allocation.picks[i].server, num_gpu, self.allocation.picks[i].num_gpu, need)
            fits = self.allocation.holds(num_gpu, need)
        if fits:
            self.allocation.commit(entry, row, model, num_gpu, need)
        else:
            entry.speedup = entry.own_speedup
        return fits

    cdef bint fair_need(self, const OrderedJob* entry, int32_t model, int32_t num_gpu, double* need,
                        bint full) noexcept nogil:
        """Turn a job's own need into its fair share; False, and nothing changes, if it needs no more than that.

        ``full``: it gets all of its share, also of what it needs less of.
        """
        cdef const double* fair = self.allocation.servers[self.allocation.base[model]].fair
        cdef bint above = False
        cdef int32_t r
        for r in range(RESOURCES):
            need[r] = entry.need[r]
            above |= not enough(fair[r] * num_gpu, need[r])
        if above:
            for r in range(RESOURCES):
                if full or need[r] > fair[r] * num_gpu:
                    need[r] = fair[r] * num_gpu
        return above

    cdef void reclaim(self, int32_t model, int32_t num_gpu, const double* need) noexcept nogil:
        """Take back, on servers with enough free GPUs for the gang, what other jobs have above their fair share."""
        cdef int32_t left = num_gpu
        cdef int32_t s, gpus, free_gpus
        self.reclaims += 1
        if num_gpu > 1:
            for s in range(self.allocation.base[model], self.allocation.base[model + 1]):
                if self.allocation.servers[s].n_free >= num_gpu:
                    self.reclaim_from(s, num_gpu, num_gpu, need)
                    return
        for free_gpus in range(1, self.allocation.width + 1):
            for s in range(self.allocation.base[model], self.allocation.base[model + 1]):
                if self.allocation.servers[s].n_free == free_gpus:
                    gpus = min(left, free_gpus)
                    self.reclaim_from(s, num_gpu, gpus, need)
                    left -= gpus
                    if left == 0:
                        return

    cdef void reclaim_from(self, int32_t server, int32_t num_gpu, int32_t gpus, const double* need) noexcept nogil:
        """Lower jobs of one server to their fair shares until the share of ``gpus`` GPUs of the need is free."""
        cdef double[RESOURCES] lack
        cdef double excess
        cdef bint lacking = False
        cdef bint gives
        cdef int32_t i, r
        cdef const ServerPart* part
        cdef Server* at = &self.allocation.servers[server]
        for r in range(RESOURCES):
            lack[r] = need[r] * gpus / num_gpu
            lack[r] = 0.0 if enough(at.left[r], lack[r]) else lack[r] - at.left[r]
            lacking |= lack[r] > 0
        if not lacking:
            return
        self.sort(server)
        for i in range(at.n_parts):
            if not lacking:
                return
            part = &self.allocation.parts[self.allocation.listed[server * self.allocation.width + i]]
            lacking = gives = False
            for r in range(RESOURCES):
                excess = at.fair[r] * part.num_gpu
                excess = 0.0 if enough(excess, part.share[r]) else part.share[r] - excess
                gives |= excess > 0 and lack[r] > 0
                lack[r] = 0.0 if enough(excess, lack[r]) else lack[r] - excess
                lacking |= lack[r] > 0
            if gives or self.sweeping:
                self.to_fair_share(part.row)

    cdef bint to_fair_share(self, int32_t row) noexcept nogil:
        """Lower a running job to its fair share, on the same GPUs; a need below that stays as it is."""
        cdef double[RESOURCES] need
        cdef OrderedJob* entry = &self.ordered_jobs.entries[row]
        cdef int32_t num_gpu = self.table.jobs[row].num_gpu
        cdef bint above = self.fair_need(entry, entry.model, num_gpu, need, self.raises)
        if self.raises and not self.allocation.room_to_reshare(entry, num_gpu, need):
            self.fair_need(entry, entry.model, num_gpu, need, False)
        if above:
            entry.speedup = 1.0
        entry.plain = True
        self.allocation.reshare(entry, num_gpu, need)
        self.demotions += 1
        return above

    cdef void sort(self, int32_t server) noexcept nogil:
        """Sort the jobs of a server: those on few servers first, then by falling CPU for each GPU, then by memory."""
        cdef int32_t* listed = &self.allocation.listed[server * self.allocation.width]
        cdef int32_t i, j, part
        for i in range(1, self.allocation.servers[server].n_parts):
            part = listed[i]
            j = i
            while j > 0 and self.before(self.allocation.parts[part].row, self.allocation.parts[listed[j - 1]].row):
                listed[j] = listed[j - 1]
                j -= 1
            listed[j] = part

    cdef bint before(self, int32_t row, int32_t other) noexcept nogil:
        cdef const OrderedJob* a = &self.ordered_jobs.entries[row]
        cdef const OrderedJob* b = &self.ordered_jobs.entries[other]
        cdef int32_t a_gpus = self.table.jobs[row].num_gpu
        cdef int32_t b_gpus = self.table.jobs[other].num_gpu
        if a.n_parts != b.n_parts:
            return a.n_parts < b.n_parts
        if a.share[0] / a_gpus != b.share[0] / b_gpus:
            return a.share[0] / a_gpus > b.share[0] / b_gpus
        return a.share[1] / a_gpus > b.share[1] / b_gpus
