"""All that a run in ordered rounds is between two of them, as numbers and bytes, and the way back.

What is rewritten in every round before it is read is left out, and so is what the run is told when it is made; jobs
that have not arrived are read again. ``tests/style/test_saved_fields.py`` has the list.
"""

from libc.stdint cimport int32_t
from fastsim_ext.rounds.leases cimport Leases, Task
from fastsim_ext.rounds.ordered_jobs cimport OrderedJob, OrderedJobTable
from fastsim_ext.rounds.ordered_loop cimport OrderedLoop
from fastsim_ext.rounds.share_loop cimport AT_TOP
from fastsim_ext.rounds.snapshot cimport (
    fill, gauge_back, gauge_state, leases_state, ledger_back, ledger_state, raw, table_back, table_state,
)


def snapshot(OrderedLoop run):
    """(numbers, bytes) by name: all that ``restore`` needs. Everything noted must have been drained."""
    if run.stage != AT_TOP or run.ledger.waiting() or run.n_records or (run.gauged and run.gauge.n_rows):
        raise ValueError("the run is within a round, or has records that were not drained")
    numbers, parts = {}, {}
    for more_numbers, more_parts in (turns_state(run), stakes_state(run.stakes), table_state(run.table),
                                     leases_state(run.leases), ledger_state(run.ledger),
                                     gauge_state(run.gauge) if run.gauged else ({}, {})):
        numbers |= more_numbers
        parts |= more_parts
    return numbers, parts


def restore(OrderedLoop run, numbers, parts):
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
