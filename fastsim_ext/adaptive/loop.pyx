"""The loop of adaptive jobs: training, arrivals, and the GPUs of each job.

Python decides between two rounds; here jobs train, GPUs are given to other jobs, and metrics are updated.
"""

import numpy as np

cimport cython
from libc.math cimport ceil, isnan
from libc.stdint cimport int32_t, int64_t
from fastsim_ext.adaptive.training_job cimport TrainingJob

cdef enum:               # fields of a task's record, as fastsim.engine.rounds.outcome.MOMENT
    FINISH = 4


@cython.final
cdef class AdaptiveLoop:
    """A run in rounds of ``round_s`` seconds; ``base__n`` is the first GPU of each node, and the number of all.

    ``interference`` is the part of its speed that a job on several nodes loses while another such job shares one.
    """

    def __init__(self, jobs, double round_s, base__n, bint recorded, ClusterMetrics metrics, double interference=0.0):
        nodes = len(base__n) - 1
        self.pending = list(reversed(jobs))
        self.round_s, self.recorded, self.metrics, self.interference = round_s, recorded, metrics, interference
        self.active, self.ended_jobs, self.tasks, self.gpus, self.held = [], [], [], [], {}
        self.base__n = base__n
        self.taken = np.zeros(base__n[nodes], np.int32)
        self.busy_s = np.zeros(base__n[nodes])
        self.used__n = np.zeros(nodes + 1, np.int32)
        if self.pending:  # rounds before the one that ends with the first arrival are left out
            self.now_s = (ceil((<TrainingJob> jobs[0]).submit_s / round_s) - 1) * round_s

    @property
    def expected(self):
        """Jobs that have not arrived yet."""
        return len(self.pending)

    def work(self):
        """Advance by one round: jobs train, those that are done leave, others arrive."""
        cdef TrainingJob job
        cdef double end_s = self.now_s + self.round_s
        cdef double delay_s, spent_s, finish_s
        cdef int64_t at = self.first_task
        cdef int32_t gpu
        staying = []
        for job in self.active:
            delay_s = min(job.restart_left_s, self.round_s)
            job.step(self.round_s)
            finish_s = end_s if isnan(job.finish_s) else job.finish_s
            if job.placement is not None:
                spent_s = finish_s - self.now_s
                job.hold(min(spent_s, self.round_s))
                for gpu in self.held[job.id][1]:
                    self.busy_s[gpu] += spent_s - delay_s
                if self.recorded:
                    (<list> self.tasks[at])[FINISH] = finish_s
                    at += 1
            if isnan(job.finish_s):
                staying.append(job)
                continue
            if self.metrics is not None:
                self.depart(job)
            self.release(job.id)
            self.ended_jobs.append(job)
        self.active = staying
        self.now_s = end_s
        while self.pending and (<TrainingJob> self.pending[len(self.pending) - 1]).submit_s <= end_s:
            job = self.pending.pop()
            job.clock_s = end_s
            self.active.append(job)
            if self.metrics is not None:
                self.metrics.arrive(job.submit_s, job.id, job.gpus_requested)
        self.rounds += 1
        self.first_task = len(self.tasks)

    def settle(self, placements, nodes):
        """Give each active job its placement (None: no GPUs) and its nodes, by GPU; ValueError if GPUs are missing."""
        cdef TrainingJob job
        cdef int64_t running = 0, active = len(self.active)
        for job, place in zip(self.active, nodes, strict=True):
            if job.id in self.held and self.held[job.id][0] != place:
                self.release(job.id)
                if not place:
                    job.wait(self.now_s)
        for job, placement, place in zip(self.active, placements, nodes, strict=True):
            stays = job.id in self.held
            if placement is not None and not stays:
                self.held[job.id] = (place, self.take(place))
                job.stay(self.now_s)
            job.move(placement, self.now_s)
            job.present += 1
            job.crowd += active
            if placement is None:
                continue
            running += 1
            job.rounds += 1
            job.samples += job.placement.replicas * job.atomic * (job.accum + 1)
            if self.recorded:
                self.tasks.append([self.rounds - 1, job.id, -1, self.now_s, self.now_s, 0.0, 0.0, job.placement.group,
                                   job.placement.gpus, -1 if stays else len(self.gpus)])
                if not stays:
                    self.gpus += self.held[job.id][1]
        if self.interference > 0:
            self.interfere()
        self.max_active = max(self.max_active, active)
        self.job_rounds += active
        self.quiet = 0 if running or not active else self.quiet + 1
        if self.metrics is not None and (active or self.pending):
            self.measure(running)

    cdef int interfere(self) except -1:
        """Slow down the jobs on several nodes one of which another such job shares."""
        cdef TrainingJob job
        cdef int32_t node
        cdef int32_t[::1] spread__n = np.zeros(self.base__n.shape[0], np.int32)
        several = {id: set(place) for id, (place, _) in self.held.items() if len(set(place)) > 1}
        for place in several.values():
            for node in place:
                spread__n[node] += 1
        for job in self.active:
            job.undisturbed = 1.0
            for node in several.get(job.id, ()):
                if spread__n[node] > 1:
                    job.undisturbed = 1.0 - self.interference
        return 0

    cdef int depart(self, TrainingJob job) except -1:
        """Record in the metrics that a job is done, and the GPUs it frees."""
        cdef int32_t[::1] gpus = np.array(self.held[job.id][1] if job.id in self.held else (), np.int32)
        cdef int32_t count = <int32_t> gpus.shape[0]
        return self.metrics.depart(min(job.finish_s, self.now_s + self.round_s), job.id, True,
                                   &gpus[0] if count else NULL, count, 0, 0)

    cdef int release(self, object job) except -1:
        """Free a job's GPUs."""
        cdef int32_t gpu, node
        place, gpus = self.held.pop(job, ((), ()))
        for node, gpu in zip(place, gpus, strict=True):
            self.taken[gpu] = 0
            self.used__n[node] -= 1
        return 0

    cdef object take(self, object nodes):
        """The free GPUs of smallest number on these nodes."""
        cdef int32_t node, gpu
        gpus = []
        for node in nodes:
            gpu = self.base__n[node]
            while gpu < self.base__n[node + 1] and self.taken[gpu]:
                gpu += 1
            if gpu == self.base__n[node + 1]:
                raise ValueError(f"more GPUs of node {node} than it has")
            self.taken[gpu] = 1
            self.used__n[node] += 1
            gpus.append(gpu)
        return gpus

    cdef int measure(self, int64_t running) except -1:
        """Update the metrics with the tasks of this round."""
        cdef Py_ssize_t node
        cdef int32_t position
        self.metrics.apply_changes(self.now_s)
        for node in range(self.base__n.shape[0] - 1):
            if self.base__n[node] == self.base__n[node + 1]:
                continue
            position = self.metrics.node_of_gpu[self.base__n[node]]
            if self.metrics.used[position] != self.used__n[node]:
                self.metrics.change(position, self.used__n[node])
        self.metrics.begin_round(self.rounds - 1, running)
        return 0

    def verify(self):
        """Check that every GPU in use is held by one job."""
        held = sorted(gpu for _, gpus in self.held.values() for gpu in gpus)
        taken = [gpu for gpu in range(self.taken.shape[0]) if self.taken[gpu]]
        assert held == taken, f"GPUs {held} are held, {taken} are in use"
        if self.metrics is not None:
            self.metrics.verify()
