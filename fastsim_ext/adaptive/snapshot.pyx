"""State of a run of adaptive jobs between two rounds as numbers and bytes: snapshot and restore.

Training curves and step times are passed to the new run, and jobs that have not arrived are read again. Fitted
parameters are stored, since each fit depends on all measurements before it. The list of fields is in
``tests/style/test_saved_fields.py``.
"""

from libc.stdint cimport int32_t
import numpy as np
from fastsim_ext.adaptive.loop cimport AdaptiveLoop
from fastsim_ext.adaptive.training_job cimport LearnedPerformance, Measurements, TrainingJob
from fastsim_ext.memory cimport memory_grown
from fastsim_ext.rounds.snapshot cimport copy_in, metrics_restore, metrics_state, raw_bytes, united


def record_types():
    """Types of stored records for NumPy, by the name of their struct."""
    cdef Trained job
    cdef Measurements row
    return {"Trained": np.asarray(<Trained[:1]> &job).dtype, "Measurements": np.asarray(<Measurements[:1]> &row).dtype}


def snapshot(AdaptiveLoop run, LearnedPerformance learned):
    """(numbers, bytes) by name: all that ``restore`` needs."""
    return united([
        loop_state(run), learned_state(learned), ({}, {}) if run.metrics is None else metrics_state(run.metrics),
        jobs_state(run.active + run.ended_jobs),
    ])


def restore(AdaptiveLoop run, LearnedPerformance learned, placements, numbers, parts):
    """Take over a snapshot in a run that has not begun; ``placements`` are those of the jobs that have GPUs, by id."""
    cdef TrainingJob job
    cdef Py_ssize_t at = 0, here, size = sizeof(Trained)
    if run.rounds or len(run.active) or (run.metrics is not None) != numbers["measured"]:
        raise ValueError("the run has begun, or metrics are measured in one of both runs only")
    learned_restore(learned, numbers, parts)
    jobs = {(<TrainingJob> job).id: job for job in run.pending}
    for ids, arrived in ((numbers["active"], run.active), (numbers["ended_jobs"], run.ended_jobs)):
        for id in ids:
            job = jobs.pop(id)
            job_restore(job, parts["jobs"][at * size:(at + 1) * size])
            here = job.history__g.shape[0] * sizeof(int32_t)
            history_restore(job, learned, parts["history"][at * here:(at + 1) * here])
            job.placement = placements.get(id)
            arrived.append(job)
            at += 1
    if at * size != len(parts["jobs"]):
        raise ValueError(f"{len(parts['jobs'])} bytes of jobs, expected {at * size}")
    run.pending = [job for job in run.pending if job.id in jobs]
    loop_restore(run, numbers, parts)
    if run.metrics is not None:
        metrics_restore(run.metrics, numbers, parts)
    run.verify()


# ---------------------------------------------------------------------- the loop

cdef tuple loop_state(AdaptiveLoop run):
    numbers = {
        "now_s": run.now_s, "rounds": run.rounds, "max_active": run.max_active, "job_rounds": run.job_rounds,
        "quiet": run.quiet, "first_moment": run.first_task, "measured": run.metrics is not None,
        "active": [job.id for job in run.active], "ended_jobs": [job.id for job in run.ended_jobs],
        "held": [[job, list(nodes), gpus] for job, (nodes, gpus) in run.held.items()],
        "moments": len(run.tasks), "gpus": len(run.gpus),
    }
    return numbers, {"busy_s": raw_bytes(&run.busy_s[0], run.busy_s.shape[0], sizeof(double))}


cdef int loop_restore(AdaptiveLoop run, numbers, parts) except -1:
    cdef int32_t node, gpu
    run.now_s, run.rounds, run.max_active = numbers["now_s"], numbers["rounds"], numbers["max_active"]
    run.job_rounds, run.quiet, run.first_task = numbers["job_rounds"], numbers["quiet"], numbers["first_moment"]
    for job, nodes, gpus in numbers["held"]:
        run.held[job] = (tuple(nodes), gpus)
        for node, gpu in zip(nodes, gpus, strict=True):
            if not run.base__n[node] <= gpu < run.base__n[node + 1] or run.taken[gpu]:
                raise ValueError(f"GPU {gpu} of node {node} held by job {job}")
            run.taken[gpu] = 1
            run.used__n[node] += 1
    copy_in(&run.busy_s[0], parts["busy_s"], run.busy_s.shape[0], sizeof(double))
    if run.interference > 0:
        run.interfere()
    return 0


def recorded_again(AdaptiveLoop run, tasks, gpus):
    """Restore the records so far."""
    run.tasks += [list(at) for at in tasks]
    run.gpus += gpus


# ---------------------------------------------------------------------- jobs and their measurements

cdef tuple jobs_state(list jobs):
    return {}, {
        "jobs": b"".join([job_state(job) for job in jobs]), "history": b"".join([history_state(job) for job in jobs]),
    }


cdef bytes job_state(TrainingJob job):
    cdef Trained all
    all.id, all.atomic, all.accum, all.epoch, all.restarts = job.id, job.atomic, job.accum, job.epoch, job.restarts
    all.rounds, all.present, all.crowd, all.samples = job.rounds, job.present, job.crowd, job.samples
    all.noisy, all.sqr, all.var = job.noisy, job.noise.sqr, job.noise.var
    all.progress, all.clock_s, all.first_s, all.finish_s = job.progress, job.clock_s, job.first_s, job.finish_s
    all.restart_left_s, all.service_s, all.wasted_s = job.restart_left_s, job.service_s, job.wasted_s
    all.used_s, all.held_s, all.gpu_s, all.paused_s = job.used_s, job.held_s, job.gpu_s, job.paused_s
    all.stays, all.preemptions, all.left_s = job.stays, job.preemptions, job.left_s
    all.delayed_s = job.delayed_s
    return raw_bytes(&all, 1, sizeof(Trained))


cdef int job_restore(TrainingJob job, part) except -1:
    cdef Trained all
    copy_in(&all, part, 1, sizeof(Trained))
    if all.id != job.id:
        raise ValueError(f"job {all.id} where job {job.id} was")
    job.atomic, job.accum, job.epoch, job.restarts = all.atomic, all.accum, all.epoch, all.restarts
    job.rounds, job.present, job.crowd, job.samples = all.rounds, all.present, all.crowd, all.samples
    job.noisy, job.noise.sqr, job.noise.var = all.noisy, all.sqr, all.var
    job.progress, job.clock_s, job.first_s, job.finish_s = all.progress, all.clock_s, all.first_s, all.finish_s
    job.restart_left_s, job.service_s, job.wasted_s = all.restart_left_s, all.service_s, all.wasted_s
    job.used_s, job.held_s, job.gpu_s, job.paused_s = all.used_s, all.held_s, all.gpu_s, all.paused_s
    job.stays, job.preemptions, job.left_s = all.stays, all.preemptions, all.left_s
    job.delayed_s = all.delayed_s
    return 0


cdef bytes history_state(TrainingJob job):
    return raw_bytes(&job.history__g[0], job.history__g.shape[0], sizeof(int32_t))


cdef int history_restore(TrainingJob job, LearnedPerformance learned, part) except -1:
    cdef int32_t history
    copy_in(&job.history__g[0], part, job.history__g.shape[0], sizeof(int32_t))
    for history in job.history__g:
        if not 0 <= history < learned.n:
            raise ValueError(f"history {history} of {learned.n}")
    return 0


cdef tuple learned_state(LearnedPerformance learned):
    return {"measurements": learned.n}, {"measurements": raw_bytes(learned.rows, learned.n, sizeof(Measurements))}


cdef int learned_restore(LearnedPerformance learned, numbers, parts) except -1:
    cdef int32_t n = numbers["measurements"], i
    cdef int32_t initial = learned.n                   # rows from before any job trained; no training leads to them
    cdef const Measurements* at
    if n < initial:
        raise ValueError(f"{n} measurements, expected {initial} or more")
    learned.rows = <Measurements*> memory_grown(learned.rows, max(n, learned.room), sizeof(Measurements))
    learned.room = max(n, learned.room)
    copy_in(learned.rows, parts["measurements"], n, sizeof(Measurements))
    learned.n = n
    for i in range(initial, n):
        at = &learned.rows[i]
        if not 0 <= at.parent < i:
            raise ValueError(f"measurement {i} after measurement {at.parent}")
        learned.known[(at.parent, at.nodes, at.replicas, at.atomic, at.turn_s, at.step_s)] = i
    return 0
