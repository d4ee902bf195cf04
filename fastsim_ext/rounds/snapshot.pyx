"""All that a run in rounds is between two of them, as numbers and bytes, and the way back.

What is rewritten in every round before it is read is left out, and so is what the run is told when it is made; jobs
that have not arrived are read again. ``tests/style/test_saved_fields.py`` has the list.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy
from cpython.bytes cimport PyBytes_FromStringAndSize
from fastsim_ext.random cimport Mersenne
from fastsim_ext.rounds.candidates cimport CandidateSelection
from fastsim_ext.rounds.cluster_metrics cimport N_AREAS, Change, ClusterMetrics, Row
from fastsim_ext.rounds.job_table cimport Job, JobTable, Pair, ShareAccount
from fastsim_ext.rounds.leases cimport Leases, Task
from fastsim_ext.rounds.ordered_jobs cimport OrderedJob, OrderedJobTable
from fastsim_ext.rounds.ordered_loop cimport OrderedLoop
from fastsim_ext.rounds.round_log cimport RoundLog
from fastsim_ext.rounds.share_loop cimport AT_TOP, ShareLoop


cdef bytes raw(const void* items, int64_t count, int64_t size):
    return PyBytes_FromStringAndSize(<const char*> items, count * size)


cdef int fill(void* target, const unsigned char[::1] part, int64_t count, int64_t size) except -1:
    """Copy ``count`` items from bytes that must be exactly so many."""
    if part.shape[0] != count * size:
        raise ValueError(f"{part.shape[0]} bytes, expected {count * size}")
    if count:
        memcpy(target, &part[0], count * size)
    return 0


cdef void* room(void* items, int64_t count, int64_t size) except NULL:
    cdef void* more = realloc(items, max(count, 1) * size)
    if more == NULL:
        raise MemoryError()
    return more


def arrived(ShareLoop run):
    """How many jobs have arrived."""
    return run.table.added


def snapshot(ShareLoop run):
    """(numbers, bytes) by name: all that ``restore`` needs. Everything noted must have been drained."""
    if run.stage != AT_TOP or run.ledger.waiting() or (run.gauged and run.gauge.n_rows):
        raise ValueError("the run is within a round, or has records that were not drained")
    numbers, parts = {}, {}
    for more_numbers, more_parts in (loop_state(run), table_state(run.table), leases_state(run.leases),
                                     draft_state(run.draft), ledger_state(run.ledger),
                                     gauge_state(run.gauge) if run.gauged else ({}, {})):
        numbers |= more_numbers
        parts |= more_parts
    return numbers, parts


def restore(ShareLoop run, numbers, parts):
    """Take over a snapshot in a run that has not begun; the jobs that have not arrived are to be fed."""
    if run.rounds or run.table.added or run.n_pending:
        raise ValueError("the run has begun")
    loop_back(run, numbers, parts)
    table_back(run.table, numbers, parts)
    leases_back(run.leases, run.table, numbers, parts)
    draft_back(run.draft, parts)
    ledger_back(run.ledger, numbers)
    if run.gauged:
        gauge_back(run.gauge, numbers, parts)
    run.verify()


def doubt(ShareLoop run):
    """The next round asks for shares as soon as it may: another policy is at work."""
    run.wanted = True


# ---------------------------------------------------------------------- the loop

cdef tuple loop_state(ShareLoop run):
    numbers = {
        "now_s": run.now_s, "start_s": run.start_s, "end_s": run.end_s, "reset_s": run.reset_s,
        "next_price_s": run.next_price_s, "last_submit_s": run.last_submit_s, "rounds": run.rounds,
        "calls": run.calls, "ended": run.ended, "max_active": run.max_active, "job_rounds": run.job_rounds,
        "began_s": run.began_s, "spoilt_gpu_s": run.spoilt_gpu_s, "quiet": run.quiet, "frozen": run.frozen,
        "wanted": int(run.wanted), "ever_reset": int(run.ever_reset), "gauged": int(run.gauged),
    }
    return numbers, {"price": raw(&run.price[0], run.price.shape[0], sizeof(double)) if run.price.shape[0] else b""}


cdef int loop_back(ShareLoop run, numbers, parts) except -1:
    if numbers["gauged"] != run.gauged:
        raise ValueError("metrics are measured in one of both runs only")
    run.now_s, run.start_s, run.end_s = numbers["now_s"], numbers["start_s"], numbers["end_s"]
    run.reset_s, run.next_price_s = numbers["reset_s"], numbers["next_price_s"]
    run.last_submit_s = numbers["last_submit_s"]
    run.rounds, run.calls, run.ended = numbers["rounds"], numbers["calls"], numbers["ended"]
    run.max_active, run.job_rounds = numbers["max_active"], numbers["job_rounds"]
    run.quiet, run.frozen = numbers["quiet"], numbers["frozen"]
    run.began_s, run.spoilt_gpu_s = numbers["began_s"], numbers["spoilt_gpu_s"]
    run.wanted, run.ever_reset = numbers["wanted"], numbers["ever_reset"]
    if run.price.shape[0]:
        fill(&run.price[0], parts["price"], run.price.shape[0], sizeof(double))
    return 0


# ---------------------------------------------------------------------- jobs and pairs

cdef tuple table_state(JobTable table):
    cdef int64_t w = table.width
    numbers = {"jobs": table.n, "couples": table.n_couples, "added": table.added}
    return numbers, {
        "gangs": raw(table.gangs, table.n, sizeof(Job)),
        "claims": raw(table.claims, table.n * w, sizeof(ShareAccount)),
        "couples": raw(table.couples, table.n_couples, sizeof(Pair)),
        "shared": raw(table.shared, table.n_couples * w, sizeof(ShareAccount)),
        "type_time": raw(table.type_time, w, sizeof(double)),
    }


cdef int table_back(JobTable table, numbers, parts) except -1:
    cdef int64_t w = table.width
    cdef int32_t n = numbers["jobs"]
    cdef int32_t n_couples = numbers["couples"]
    table.gangs = <Job*> room(table.gangs, n, sizeof(Job))
    table.claims = <ShareAccount*> room(table.claims, n * w, sizeof(ShareAccount))
    table.couples = <Pair*> room(table.couples, n_couples, sizeof(Pair))
    table.shared = <ShareAccount*> room(table.shared, n_couples * w, sizeof(ShareAccount))
    fill(table.gangs, parts["gangs"], n, sizeof(Job))
    fill(table.claims, parts["claims"], n * w, sizeof(ShareAccount))
    fill(table.couples, parts["couples"], n_couples, sizeof(Pair))
    fill(table.shared, parts["shared"], n_couples * w, sizeof(ShareAccount))
    fill(table.type_time, parts["type_time"], w, sizeof(double))
    table.n, table.n_couples, table.room, table.couple_room = n, n_couples, n, n_couples
    table.added = numbers["added"]
    return 0


# ---------------------------------------------------------------------- GPUs held

cdef tuple leases_state(Leases leases):
    numbers = {"tasks": leases.n, "held": leases.n_held, "turn": leases.turn, "extensions": leases.extensions,
               "opportunities": leases.opportunities}
    return numbers, {
        "leases": raw(leases.tasks, leases.n, sizeof(Task)),
        "gpu": raw(leases.gpu, leases.n_held, sizeof(int32_t)),
        "busy_s": raw(leases.busy_s, leases.gpus, sizeof(double)),
    }


cdef int leases_back(Leases leases, JobTable table, numbers, parts) except -1:
    cdef int32_t i
    cdef const Task* task
    if not (0 <= numbers["tasks"] <= leases.gpus and 0 <= numbers["held"] <= leases.gpus):
        raise ValueError(f"{numbers['tasks']} tasks hold {numbers['held']} GPUs, expected at most {leases.gpus}")
    leases.n, leases.n_held, leases.turn = numbers["tasks"], numbers["held"], numbers["turn"]
    leases.extensions, leases.opportunities = numbers["extensions"], numbers["opportunities"]
    fill(leases.tasks, parts["leases"], leases.n, sizeof(Task))
    fill(leases.gpu, parts["gpu"], leases.n_held, sizeof(int32_t))
    fill(leases.busy_s, parts["busy_s"], leases.gpus, sizeof(double))
    for i in range(leases.n):
        task = &leases.tasks[i]
        if not (0 <= task.row < table.n and task.mate < table.n and task.couple < table.n_couples
                and 0 <= task.model < leases.width and 0 <= task.held <= leases.n_held - task.num_gpu):
            raise ValueError(f"task {i} of {leases.n} is of no job that is there")
    return 0


# ---------------------------------------------------------------------- the rest

cdef tuple draft_state(CandidateSelection draft):
    return {}, {"shuffler": raw(&draft.shuffler, 1, sizeof(Mersenne))}


cdef int draft_back(CandidateSelection draft, parts) except -1:
    return fill(&draft.shuffler, parts["shuffler"], 1, sizeof(Mersenne))


cdef tuple ledger_state(RoundLog ledger):
    return {"gpu_drained": ledger.gpu_drained}, {}


cdef int ledger_back(RoundLog ledger, numbers) except -1:
    ledger.gpu_drained = numbers["gpu_drained"]
    return 0


cdef tuple gauge_state(ClusterMetrics gauge):
    cdef int64_t nodes = gauge.used.shape[0]
    numbers = {"gauge_turn": gauge.turn, "touched": gauge.n_touched, "finished": gauge.finished,
               "dropped": gauge.dropped, "arrived": gauge.arrived, "arrived_gpu": gauge.arrived_gpu,
               "news": int(gauge.news), "next_s": gauge.next_s, "first_s": gauge.began_s,
               "changes": gauge.n_changes, "given": gauge.n_given}
    return numbers, {
        "used": raw(&gauge.used[0], nodes, sizeof(int32_t)),
        "fresh": raw(&gauge.fresh[0], nodes, sizeof(int32_t)),
        "touched": raw(&gauge.touched[0], nodes, sizeof(int32_t)),
        "mark": raw(&gauge.mark[0], nodes, sizeof(int64_t)),
        "now": raw(&gauge.now, 1, sizeof(Row)),
        "at_capacity": raw(&gauge.at_capacity, 1, sizeof(Row)),
        "area": raw(&gauge.area[0], N_AREAS, sizeof(double)),
        "changes": raw(gauge.changes, gauge.n_changes, sizeof(Change)),
        "given": raw(gauge.given, gauge.n_given, sizeof(int32_t)),
    }


cdef int gauge_back(ClusterMetrics gauge, numbers, parts) except -1:
    cdef int64_t nodes = gauge.used.shape[0]
    gauge.turn, gauge.n_touched = numbers["gauge_turn"], numbers["touched"]
    gauge.finished, gauge.dropped = numbers["finished"], numbers["dropped"]
    gauge.arrived, gauge.arrived_gpu, gauge.news = numbers["arrived"], numbers["arrived_gpu"], numbers["news"]
    gauge.next_s, gauge.began_s = numbers["next_s"], numbers["first_s"]
    gauge.n_changes = gauge.change_room = numbers["changes"]
    gauge.n_given = gauge.given_room = numbers["given"]
    gauge.changes = <Change*> room(gauge.changes, gauge.n_changes, sizeof(Change))
    gauge.given = <int32_t*> room(gauge.given, gauge.n_given, sizeof(int32_t))
    fill(gauge.changes, parts["changes"], gauge.n_changes, sizeof(Change))
    fill(gauge.given, parts["given"], gauge.n_given, sizeof(int32_t))
    fill(&gauge.used[0], parts["used"], nodes, sizeof(int32_t))
    fill(&gauge.fresh[0], parts["fresh"], nodes, sizeof(int32_t))
    fill(&gauge.touched[0], parts["touched"], nodes, sizeof(int32_t))
    fill(&gauge.mark[0], parts["mark"], nodes, sizeof(int64_t))
    fill(&gauge.now, parts["now"], 1, sizeof(Row))
    fill(&gauge.at_capacity, parts["at_capacity"], 1, sizeof(Row))
    fill(&gauge.area[0], parts["area"], N_AREAS, sizeof(double))
    return 0


def ordered_snapshot(OrderedLoop run):
    """(numbers, bytes) by name: all that ``ordered_restore`` needs. Everything noted must have been drained."""
    if run.stage != AT_TOP or run.ledger.waiting() or run.n_records or (run.gauged and run.gauge.n_rows):
        raise ValueError("the run is within a round, or has records that were not drained")
    numbers, parts = {}, {}
    for more_numbers, more_parts in (turns_state(run), stakes_state(run.stakes), table_state(run.table),
                                     leases_state(run.leases), ledger_state(run.ledger),
                                     gauge_state(run.gauge) if run.gauged else ({}, {})):
        numbers |= more_numbers
        parts |= more_parts
    return numbers, parts


def ordered_restore(OrderedLoop run, numbers, parts):
    """Take over a snapshot in a run that has not begun; the jobs that have not arrived are to be fed."""
    if run.rounds or run.table.added or run.n_pending:
        raise ValueError("the run has begun")
    turns_back(run, numbers, parts)
    table_back(run.table, numbers, parts)
    stakes_back(run.stakes, numbers, parts)
    held_back(run.leases, numbers, parts)
    ledger_back(run.ledger, numbers)
    if run.gauged:
        gauge_back(run.gauge, numbers, parts)
    run.verify()


cdef tuple turns_state(OrderedLoop run):
    numbers = {
        "now_s": run.now_s, "next_price_s": run.next_price_s, "done_s": run.done_s, "end_s": run.end_s,
        "rounds": run.rounds,
        "calls": run.calls, "ended": run.ended, "max_active": run.max_active, "job_rounds": run.job_rounds,
        "quiet": run.quiet, "gauged": int(run.gauged), "reclaims": run.portions.reclaims,
        "demotions": run.portions.demotions, "asked_gpus": run.asked_gpus, "told": run.told,
        "spoilt_gpu_s": run.spoilt_gpu_s,
    }
    return numbers, {"price": raw(&run.price[0], run.price.shape[0], sizeof(double)) if run.price.shape[0] else b""}


cdef int turns_back(OrderedLoop run, numbers, parts) except -1:
    if numbers["gauged"] != run.gauged:
        raise ValueError("metrics are measured in one of both runs only")
    run.now_s, run.next_price_s, run.done_s = numbers["now_s"], numbers["next_price_s"], numbers["done_s"]
    run.end_s = numbers["end_s"]
    run.rounds, run.calls, run.ended = numbers["rounds"], numbers["calls"], numbers["ended"]
    run.max_active, run.job_rounds, run.quiet = numbers["max_active"], numbers["job_rounds"], numbers["quiet"]
    run.asked_gpus, run.told, run.spoilt_gpu_s = numbers["asked_gpus"], numbers["told"], numbers["spoilt_gpu_s"]
    run.portions.reclaims, run.portions.demotions = numbers["reclaims"], numbers["demotions"]
    if run.price.shape[0]:
        fill(&run.price[0], parts["price"], run.price.shape[0], sizeof(double))
    return 0


cdef tuple stakes_state(OrderedJobTable stakes):
    return {"stakes": stakes.n}, {
        "stakes": raw(stakes.stakes, stakes.n, sizeof(OrderedJob)),
        "order": raw(stakes.order, stakes.n, sizeof(int32_t)),
    }


cdef int stakes_back(OrderedJobTable stakes, numbers, parts) except -1:
    stakes.reserve(numbers["stakes"])
    stakes.n = numbers["stakes"]
    fill(stakes.stakes, parts["stakes"], stakes.n, sizeof(OrderedJob))
    fill(stakes.order, parts["order"], stakes.n, sizeof(int32_t))
    return 0


cdef int held_back(Leases leases, numbers, parts) except -1:
    """The last round's tasks; their jobs may have left, and only their GPUs count."""
    cdef int32_t i
    cdef const Task* task
    if not (0 <= numbers["tasks"] and 0 <= numbers["held"] <= leases.gpus):
        raise ValueError(f"{numbers['tasks']} tasks hold {numbers['held']} GPUs, expected at most {leases.gpus}")
    leases.reserve(numbers["tasks"])
    leases.n, leases.n_held, leases.turn = numbers["tasks"], numbers["held"], numbers["turn"]
    leases.extensions, leases.opportunities = numbers["extensions"], numbers["opportunities"]
    fill(leases.tasks, parts["leases"], leases.n, sizeof(Task))
    fill(leases.gpu, parts["gpu"], leases.n_held, sizeof(int32_t))
    fill(leases.busy_s, parts["busy_s"], leases.gpus, sizeof(double))
    for i in range(leases.n):
        task = &leases.tasks[i]
        if not (0 <= task.num_gpu and 0 <= task.held <= leases.n_held - task.num_gpu):
            raise ValueError(f"task {i} of {leases.n} holds GPUs that are not there")
    return 0
