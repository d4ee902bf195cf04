"""All that a run of adaptive jobs is between two rounds, as numbers and bytes, and the way back.

Training curves and step times are told again, jobs that have not come are read again. What has been fitted is kept:
a lesson hangs on all measurements before it. ``tests/style/test_saved_fields.py`` has the list.
"""

from libc.stdint cimport int32_t
from fastsim_ext.adaptive.loop cimport AdaptiveLoop
from fastsim_ext.adaptive.training_job cimport LearnedPerformance, Measurements, TrainingJob
from fastsim_ext.memory cimport memory_grown
from fastsim_ext.rounds.snapshot cimport fill, gauge_back, gauge_state, raw


def snapshot(AdaptiveLoop run, LearnedPerformance lessons):
    """(numbers, bytes) by name: all that ``restore`` needs."""
    numbers, parts = {}, {}
    for more_numbers, more_parts in (loop_state(run), lessons_state(lessons),
                                     ({}, {}) if run.gauge is None else gauge_state(run.gauge)):
        numbers |= more_numbers
        parts |= more_parts
    jobs = run.active + run.gone
    parts["jobs"] = b"".join([trainee_state(job) for job in jobs])
    parts["lesson"] = b"".join([lesson_state(job) for job in jobs])
    return numbers, parts


def restore(AdaptiveLoop run, LearnedPerformance lessons, sites, numbers, parts):
    """Take over a snapshot in a run that has not begun; ``sites`` are those of the jobs that have GPUs, by id."""
    cdef TrainingJob job
    cdef Py_ssize_t at = 0, here, size = sizeof(Trained)
    if run.rounds or len(run.active) or (run.gauge is not None) != numbers["gauged"]:
        raise ValueError("the run has begun, or metrics are measured in one of both runs only")
    lessons_back(lessons, numbers, parts)
    jobs = {(<TrainingJob> job).id: job for job in run.pending}
    for ids, arrived in ((numbers["active"], run.active), (numbers["gone"], run.gone)):
        for id in ids:
            job = jobs.pop(id)
            trainee_back(job, parts["jobs"][at * size:(at + 1) * size])
            here = job.lesson__g.shape[0] * sizeof(int32_t)
            lesson_back(job, lessons, parts["lesson"][at * here:(at + 1) * here])
            job.site = sites.get(id)
            arrived.append(job)
            at += 1
    if at * size != len(parts["jobs"]):
        raise ValueError(f"{len(parts['jobs'])} bytes of jobs, expected {at * size}")
    run.pending = [job for job in run.pending if job.id in jobs]
    loop_back(run, numbers, parts)
    if run.gauge is not None:
        gauge_back(run.gauge, numbers, parts)
    run.verify()


# ---------------------------------------------------------------------- the loop

cdef tuple loop_state(AdaptiveLoop run):
    numbers = {
        "now_s": run.now_s, "rounds": run.rounds, "max_active": run.max_active, "job_rounds": run.job_rounds,
        "quiet": run.quiet, "first_moment": run.first_moment, "gauged": run.gauge is not None,
        "active": [job.id for job in run.active], "gone": [job.id for job in run.gone],
        "held": [[job, list(nodes), gpus] for job, (nodes, gpus) in run.held.items()],
        "moments": len(run.moments), "gpus": len(run.gpus),
    }
    return numbers, {"busy_s": raw(&run.busy_s[0], run.busy_s.shape[0], sizeof(double))}


cdef int loop_back(AdaptiveLoop run, numbers, parts) except -1:
    cdef int32_t node, gpu
    run.now_s, run.rounds, run.max_active = numbers["now_s"], numbers["rounds"], numbers["max_active"]
    run.job_rounds, run.quiet, run.first_moment = numbers["job_rounds"], numbers["quiet"], numbers["first_moment"]
    for job, nodes, gpus in numbers["held"]:
        run.held[job] = (tuple(nodes), gpus)
        for node, gpu in zip(nodes, gpus, strict=True):
            if not run.base__n[node] <= gpu < run.base__n[node + 1] or run.owned[gpu]:
                raise ValueError(f"GPU {gpu} of node {node} held by job {job}")
            run.owned[gpu] = 1
            run.used__n[node] += 1
    fill(&run.busy_s[0], parts["busy_s"], run.busy_s.shape[0], sizeof(double))
    return 0


def recorded_again(AdaptiveLoop run, moments, gpus):
    """Take back what was recorded so far."""
    run.moments += [list(at) for at in moments]
    run.gpus += gpus


# ---------------------------------------------------------------------- jobs and what they know

cdef bytes trainee_state(TrainingJob job):
    cdef Trained all
    all.id, all.atomic, all.accum, all.epoch, all.restarts = job.id, job.atomic, job.accum, job.epoch, job.restarts
    all.rounds, all.present, all.crowd, all.samples = job.rounds, job.present, job.crowd, job.samples
    all.noisy, all.sqr, all.var = job.noisy, job.noise.sqr, job.noise.var
    all.progress, all.clock_s, all.first_s, all.finish_s = job.progress, job.clock_s, job.first_s, job.finish_s
    all.restart_left_s, all.service_s, all.wasted_s = job.restart_left_s, job.service_s, job.wasted_s
    all.used_s, all.held_s, all.gpu_s, all.paused_s = job.used_s, job.held_s, job.gpu_s, job.paused_s
    all.stays, all.preemptions, all.left_s = job.stays, job.preemptions, job.left_s
    return raw(&all, 1, sizeof(Trained))


cdef int trainee_back(TrainingJob job, part) except -1:
    cdef Trained all
    fill(&all, part, 1, sizeof(Trained))
    if all.id != job.id:
        raise ValueError(f"job {all.id} where job {job.id} was")
    job.atomic, job.accum, job.epoch, job.restarts = all.atomic, all.accum, all.epoch, all.restarts
    job.rounds, job.present, job.crowd, job.samples = all.rounds, all.present, all.crowd, all.samples
    job.noisy, job.noise.sqr, job.noise.var = all.noisy, all.sqr, all.var
    job.progress, job.clock_s, job.first_s, job.finish_s = all.progress, all.clock_s, all.first_s, all.finish_s
    job.restart_left_s, job.service_s, job.wasted_s = all.restart_left_s, all.service_s, all.wasted_s
    job.used_s, job.held_s, job.gpu_s, job.paused_s = all.used_s, all.held_s, all.gpu_s, all.paused_s
    job.stays, job.preemptions, job.left_s = all.stays, all.preemptions, all.left_s
    return 0


cdef bytes lesson_state(TrainingJob job):
    return raw(&job.lesson__g[0], job.lesson__g.shape[0], sizeof(int32_t))


cdef int lesson_back(TrainingJob job, LearnedPerformance lessons, part) except -1:
    cdef int32_t lesson
    fill(&job.lesson__g[0], part, job.lesson__g.shape[0], sizeof(int32_t))
    for lesson in job.lesson__g:
        if not 0 <= lesson < lessons.n:
            raise ValueError(f"lesson {lesson} of {lessons.n}")
    return 0


cdef tuple lessons_state(LearnedPerformance lessons):
    return {"lessons": lessons.n}, {"lessons": raw(lessons.rows, lessons.n, sizeof(Measurements))}


cdef int lessons_back(LearnedPerformance lessons, numbers, parts) except -1:
    cdef int32_t n = numbers["lessons"], i
    cdef int32_t taught = lessons.n                   # before any job trained: nobody comes to these by training
    cdef const Measurements* at
    if n < taught:
        raise ValueError(f"{n} lessons, expected {taught} or more")
    lessons.rows = <Measurements*> memory_grown(lessons.rows, max(n, lessons.room), sizeof(Measurements))
    lessons.room = max(n, lessons.room)
    fill(lessons.rows, parts["lessons"], n, sizeof(Measurements))
    lessons.n = n
    for i in range(taught, n):
        at = &lessons.rows[i]
        if not 0 <= at.parent < i:
            raise ValueError(f"lesson {i} after lesson {at.parent}")
        lessons.known[(at.parent, at.nodes, at.replicas, at.atomic, at.turn_s, at.step_s)] = i
    return 0
