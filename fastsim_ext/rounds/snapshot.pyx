"""State of a run in rounds between two rounds as numbers and bytes: snapshot and restore.

A run has a common part and that of its kind of rounds; ``request_allocation`` is for forks, and the functions behind it
for explanations of a round. Arguments of the run and fields that every round rewrites before it reads them are left
out; jobs that have not arrived are read again. ``tests/style/test_saved_fields.py`` has the list.
"""

from libc.math cimport INFINITY, ceil, isfinite
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy
import numpy as np
from cpython.bytes cimport PyBytes_FromStringAndSize
from fastsim_ext.random cimport Mersenne
from fastsim_ext.rounds.candidates cimport CandidateSelection
from fastsim_ext.rounds.cluster_metrics cimport N_AREAS, N_COUNTS, N_TOTALS, Change, ClusterMetrics, Row
from fastsim_ext.rounds.job_table cimport Job, JobTable, Pair, ShareAccount
from fastsim_ext.rounds.leases cimport Leases, Task
from fastsim_ext.rounds.loop cimport AT_TOP, RoundLoop
from fastsim_ext.rounds.ordered_jobs cimport OrderedJob, OrderedJobTable
from fastsim_ext.rounds.ordered_loop cimport OrderedLoop, RoundRecord
from fastsim_ext.rounds.round_log cimport RoundLog, TaskRecord
from fastsim_ext.rounds.share_loop cimport ShareLoop
from fastsim_ext.sorting cimport MOST_TERMS

cdef enum:               # places in fastsim.engine.tables.EVENTS
    DEPARTURE = 1
    ARRIVAL = 5


cdef bytes raw_bytes(const void* items, int64_t count, int64_t size):
    return PyBytes_FromStringAndSize(<const char*> items, count * size)


cdef int copy_in(void* target, const unsigned char[::1] part, int64_t count, int64_t size) except -1:
    """Copy ``count`` items from bytes that must be exactly so many."""
    if part.shape[0] != count * size:
        raise ValueError(f"{part.shape[0]} bytes, expected {count * size}")
    if count:
        memcpy(target, &part[0], count * size)
    return 0


cdef void* resized(void* items, int64_t count, int64_t size) except NULL:
    cdef void* more = realloc(items, max(count, 1) * size)
    if more == NULL:
        raise MemoryError()
    return more


def record_types():
    """Types of stored records for NumPy, by the name of their struct."""
    cdef Job job
    cdef Pair pair
    cdef Task task
    cdef ShareAccount account
    cdef OrderedJob ordered
    cdef TaskRecord noted
    cdef RoundRecord played
    cdef Mersenne stream
    return {
        "Job": np.asarray(<Job[:1]> &job).dtype, "Pair": np.asarray(<Pair[:1]> &pair).dtype,
        "Task": np.asarray(<Task[:1]> &task).dtype, "ShareAccount": np.asarray(<ShareAccount[:1]> &account).dtype,
        "OrderedJob": np.asarray(<OrderedJob[:1]> &ordered).dtype,
        "TaskRecord": np.asarray(<TaskRecord[:1]> &noted).dtype,
        "RoundRecord": np.asarray(<RoundRecord[:1]> &played).dtype,
        "Mersenne": np.asarray(<Mersenne[:1]> &stream).dtype,
    }


def arrived(RoundLoop run):
    """How many jobs have arrived."""
    return run.table.added


def snapshot(RoundLoop run):
    """(numbers, bytes) by name: all that ``restore`` needs. Everything noted must have been drained."""
    if run.stage != AT_TOP or run.undrained() or (run.measured and run.metrics.n_rows):
        raise ValueError("the run is within a round, or has records that were not drained")
    return united(states(run))


cdef tuple united(list states):
    """The numbers and bytes of parts of a run, in two dictionaries."""
    numbers, parts = {}, {}
    for more_numbers, more_parts in states:
        numbers |= more_numbers
        parts |= more_parts
    return numbers, parts


cdef list states(RoundLoop run):
    """The numbers and bytes of each part of a run."""
    found = [common_state(run), table_state(run.table), leases_state(run.leases), log_state(run.log)]
    if isinstance(run, ShareLoop):
        found += [share_state(run), selection_state((<ShareLoop> run).selection)]
    else:
        found += [ordered_state(run), ordered_jobs_state((<OrderedLoop> run).ordered_jobs)]
    if run.measured:
        found.append(metrics_state(run.metrics))
    return found


def restore(RoundLoop run, numbers, parts):
    """Take over a snapshot in a run that has not begun; the jobs that have not arrived are to be fed."""
    if run.rounds or run.table.added or run.n_pending:
        raise ValueError("the run has begun")
    common_restore(run, numbers, parts)
    table_restore(run.table, numbers, parts)
    leases_restore(run.leases, numbers, parts)
    log_restore(run.log, numbers)
    if isinstance(run, ShareLoop):
        share_restore(run, numbers)
        selection_restore((<ShareLoop> run).selection, parts)
    else:
        ordered_restore(run, numbers)
        ordered_jobs_restore((<OrderedLoop> run).ordered_jobs, numbers, parts)
    if run.measured:
        metrics_restore(run.metrics, numbers, parts)
    if run.presence is not None:
        presence_restore(run, numbers)
    run.verify()


cdef int presence_restore(RoundLoop run, numbers) except -1:
    """Count the GPUs and nodes that were there in the last round, which ``presence`` has seen again."""
    cdef int32_t node
    if run.presence.seen_s != numbers["nodes_s"]:
        raise ValueError(f"nodes as seen at {run.presence.seen_s} s, expected {numbers['nodes_s']}")
    run.leases.count_present()
    if isinstance(run, OrderedLoop):
        (<OrderedLoop> run).allocation.clear()
    if run.measured:
        for node in range(run.presence.away.shape[0]):
            run.metrics.absent[node] = run.presence.away[node] > 0
    return 0


def request_allocation(ShareLoop run):
    """Ask for a new allocation at the next round that ``realloc_s`` allows; used when a fork changes the policy."""
    run.allocation_wanted = True


# ---------------------------------------------------------------------- of one round

def next_round_s(RoundLoop run):
    """When the round begins that is next; the loop stands between two rounds, and a job has been read."""
    cdef int32_t i
    cdef double at_s = -INFINITY
    if isinstance(run, ShareLoop):
        for i in range(run.leases.n):
            at_s = max(at_s, run.leases.tasks[i].finish_s)
        return at_s if run.leases.n else (<ShareLoop> run).next_event_s()
    at_s = run.now_s
    if run.table.n == 0 and run.at_pending < run.n_pending:
        at_s = run.pending[run.at_pending].submit_s
    if at_s <= run.now_s:
        return run.now_s
    return (<OrderedLoop> run).begin_s + ceil((at_s - (<OrderedLoop> run).begin_s) / run.round_s) * run.round_s


def visited(ShareLoop run):
    """GPU models in the order in which the last round filled them."""
    return [run.selection.visit[i] for i in range(run.leases.width)]


def sort_keys(OrderedLoop run, int32_t jobs):
    """The sort keys of so many rows in the last round, MOST_TERMS numbers each, as bytes."""
    return raw_bytes(run.ordered_jobs.keys, min(jobs, run.ordered_jobs.room) * MOST_TERMS, sizeof(double))


# ---------------------------------------------------------------------- the loop

cdef tuple common_state(RoundLoop run):
    numbers = {
        "now_s": run.now_s, "next_price_s": run.next_price_s, "rounds": run.rounds, "calls": run.calls,
        "ended": run.ended, "max_active": run.max_active, "job_rounds": run.job_rounds,
        "wasted_gpu_s": run.wasted_gpu_s, "quiet": run.quiet, "measured": int(run.measured),
    }
    if run.presence is not None:
        numbers["nodes_s"] = run.presence.seen_s
    price = raw_bytes(&run.price[0], run.price.shape[0], sizeof(double)) if run.price.shape[0] else b""
    return numbers, {"price": price}


cdef int common_restore(RoundLoop run, numbers, parts) except -1:
    if numbers["measured"] != run.measured:
        raise ValueError("metrics are measured in one of both runs only")
    if ("nodes_s" in numbers) != (run.presence is not None):
        raise ValueError("nodes come and go in one of both runs only")
    run.now_s, run.next_price_s, run.wasted_gpu_s = numbers["now_s"], numbers["next_price_s"], numbers["wasted_gpu_s"]
    run.rounds, run.calls, run.ended = numbers["rounds"], numbers["calls"], numbers["ended"]
    run.max_active, run.job_rounds, run.quiet = numbers["max_active"], numbers["job_rounds"], numbers["quiet"]
    if run.price.shape[0]:
        copy_in(&run.price[0], parts["price"], run.price.shape[0], sizeof(double))
    return 0


cdef tuple share_state(ShareLoop run):
    return {
        "start_s": run.start_s, "end_s": run.end_s, "reset_s": run.reset_s, "last_submit_s": run.last_submit_s,
        "began_s": run.began_s, "frozen": run.frozen, "wanted": int(run.allocation_wanted),
        "ever_reset": int(run.ever_reset),
    }, {}


cdef int share_restore(ShareLoop run, numbers) except -1:
    run.start_s, run.end_s, run.reset_s = numbers["start_s"], numbers["end_s"], numbers["reset_s"]
    run.last_submit_s, run.began_s, run.frozen = numbers["last_submit_s"], numbers["began_s"], numbers["frozen"]
    run.allocation_wanted, run.ever_reset = numbers["wanted"], numbers["ever_reset"]
    return check_tasks(run.leases, run.table)


cdef tuple ordered_state(OrderedLoop run):
    return {
        "done_s": run.done_s, "end_s": run.end_s, "demanded_gpus": run.demanded_gpus, "reported": run.reported,
        "reclaims": run.shares.reclaims, "demotions": run.shares.demotions,
    }, {}


cdef int ordered_restore(OrderedLoop run, numbers) except -1:
    run.done_s, run.end_s = numbers["done_s"], numbers["end_s"]
    run.demanded_gpus, run.reported = numbers["demanded_gpus"], numbers["reported"]
    run.shares.reclaims, run.shares.demotions = numbers["reclaims"], numbers["demotions"]
    return 0


# ---------------------------------------------------------------------- jobs and pairs

cdef tuple table_state(JobTable table):
    cdef int64_t w = table.width
    numbers = {"jobs": table.n, "couples": table.n_pairs, "added": table.added}
    return numbers, {
        "gangs": raw_bytes(table.jobs, table.n, sizeof(Job)),
        "claims": raw_bytes(table.accounts, table.n * w, sizeof(ShareAccount)),
        "couples": raw_bytes(table.pairs, table.n_pairs, sizeof(Pair)),
        "shared": raw_bytes(table.shared, table.n_pairs * w, sizeof(ShareAccount)),
        "type_time": raw_bytes(table.type_time, w, sizeof(double)),
    }


cdef int table_restore(JobTable table, numbers, parts) except -1:
    cdef int64_t w = table.width
    cdef int32_t n = numbers["jobs"]
    cdef int32_t n_pairs = numbers["couples"]
    table.jobs = <Job*> resized(table.jobs, n, sizeof(Job))
    table.accounts = <ShareAccount*> resized(table.accounts, n * w, sizeof(ShareAccount))
    table.pairs = <Pair*> resized(table.pairs, n_pairs, sizeof(Pair))
    table.shared = <ShareAccount*> resized(table.shared, n_pairs * w, sizeof(ShareAccount))
    copy_in(table.jobs, parts["gangs"], n, sizeof(Job))
    copy_in(table.accounts, parts["claims"], n * w, sizeof(ShareAccount))
    copy_in(table.pairs, parts["couples"], n_pairs, sizeof(Pair))
    copy_in(table.shared, parts["shared"], n_pairs * w, sizeof(ShareAccount))
    copy_in(table.type_time, parts["type_time"], w, sizeof(double))
    table.n, table.n_pairs, table.room, table.pair_room = n, n_pairs, n, n_pairs
    table.added = numbers["added"]
    return 0


# ---------------------------------------------------------------------- GPUs held

cdef tuple leases_state(Leases leases):
    numbers = {"tasks": leases.n, "held": leases.n_held, "turn": leases.turn, "extensions": leases.extensions,
               "opportunities": leases.opportunities}
    return numbers, {
        "leases": raw_bytes(leases.tasks, leases.n, sizeof(Task)),
        "gpu": raw_bytes(leases.gpu, leases.n_held, sizeof(int32_t)),
        "busy_s": raw_bytes(leases.busy_s, leases.gpus, sizeof(double)),
    }


cdef int leases_restore(Leases leases, numbers, parts) except -1:
    cdef int32_t i
    cdef const Task* task
    if not (0 <= numbers["tasks"] and 0 <= numbers["held"] <= leases.gpus):
        raise ValueError(f"{numbers['tasks']} tasks hold {numbers['held']} GPUs, expected at most {leases.gpus}")
    leases.reserve(numbers["tasks"])
    leases.n, leases.n_held, leases.turn = numbers["tasks"], numbers["held"], numbers["turn"]
    leases.extensions, leases.opportunities = numbers["extensions"], numbers["opportunities"]
    copy_in(leases.tasks, parts["leases"], leases.n, sizeof(Task))
    copy_in(leases.gpu, parts["gpu"], leases.n_held, sizeof(int32_t))
    copy_in(leases.busy_s, parts["busy_s"], leases.gpus, sizeof(double))
    for i in range(leases.n):
        task = &leases.tasks[i]
        if not (0 <= task.num_gpu and 0 <= task.held <= leases.n_held - task.num_gpu):
            raise ValueError(f"task {i} of {leases.n} holds GPUs that are not there")
    return 0


cdef int check_tasks(Leases leases, JobTable table) except -1:
    """Tasks of shares are of jobs that are there, each on a GPU at least: the next round begins with crediting them.

    Those of ordered rounds may be of jobs that have left, since only their GPUs count.
    """
    cdef int32_t i
    cdef const Task* task
    if leases.n > leases.gpus:
        raise ValueError(f"{leases.n} tasks, expected at most {leases.gpus}")
    for i in range(leases.n):
        task = &leases.tasks[i]
        if not (0 <= task.row < table.n and task.mate < table.n and task.pair < table.n_pairs
                and 0 <= task.model < leases.width):
            raise ValueError(f"task {i} of {leases.n} is of no job that is there")
    return 0


# ---------------------------------------------------------------------- the rest

cdef tuple selection_state(CandidateSelection selection):
    return {}, {"shuffler": raw_bytes(&selection.shuffler, 1, sizeof(Mersenne))}


cdef int selection_restore(CandidateSelection selection, parts) except -1:
    return copy_in(&selection.shuffler, parts["shuffler"], 1, sizeof(Mersenne))


cdef tuple ordered_jobs_state(OrderedJobTable ordered_jobs):
    return {"stakes": ordered_jobs.n}, {
        "stakes": raw_bytes(ordered_jobs.entries, ordered_jobs.n, sizeof(OrderedJob)),
        "order": raw_bytes(ordered_jobs.order, ordered_jobs.n, sizeof(int32_t)),
    }


cdef int ordered_jobs_restore(OrderedJobTable ordered_jobs, numbers, parts) except -1:
    ordered_jobs.reserve(numbers["stakes"])
    ordered_jobs.n = numbers["stakes"]
    copy_in(ordered_jobs.entries, parts["stakes"], ordered_jobs.n, sizeof(OrderedJob))
    copy_in(ordered_jobs.order, parts["order"], ordered_jobs.n, sizeof(int32_t))
    return 0


cdef tuple log_state(RoundLog log):
    return {"gpu_drained": log.gpu_drained}, {}


cdef int log_restore(RoundLog log, numbers) except -1:
    log.gpu_drained = numbers["gpu_drained"]
    return 0


cdef tuple metrics_state(ClusterMetrics metrics):
    cdef int64_t nodes = metrics.used.shape[0]
    numbers = {"gauge_turn": metrics.round_number, "touched": metrics.n_touched, "finished": metrics.finished,
               "dropped": metrics.dropped, "arrived": metrics.arrived, "arrived_gpu": metrics.arrived_gpu,
               "news": int(metrics.arrivals_seen), "next_s": metrics.next_s, "first_s": metrics.began_s,
               "changes": metrics.n_changes, "given": metrics.n_freed}
    return numbers, {
        "used": raw_bytes(&metrics.used[0], nodes, sizeof(int32_t)),
        "fresh": raw_bytes(&metrics.fresh[0], nodes, sizeof(int32_t)),
        "touched": raw_bytes(&metrics.touched[0], nodes, sizeof(int32_t)),
        "mark": raw_bytes(&metrics.mark[0], nodes, sizeof(int64_t)),
        "now": raw_bytes(&metrics.now, 1, sizeof(Row)),
        "at_capacity": raw_bytes(&metrics.at_capacity, 1, sizeof(Row)),
        "area": raw_bytes(&metrics.area[0], N_AREAS, sizeof(double)),
        "changes": raw_bytes(metrics.changes, metrics.n_changes, sizeof(Change)),
        "given": raw_bytes(metrics.freed, metrics.n_freed, sizeof(int32_t)),
    }


cdef int metrics_restore(ClusterMetrics metrics, numbers, parts) except -1:
    cdef int64_t nodes = metrics.used.shape[0]
    metrics.round_number, metrics.n_touched = numbers["gauge_turn"], numbers["touched"]
    metrics.finished, metrics.dropped = numbers["finished"], numbers["dropped"]
    metrics.arrived, metrics.arrived_gpu = numbers["arrived"], numbers["arrived_gpu"]
    metrics.arrivals_seen = numbers["news"]
    metrics.next_s, metrics.began_s = numbers["next_s"], numbers["first_s"]
    metrics.n_changes = metrics.change_room = numbers["changes"]
    metrics.n_freed = metrics.freed_room = numbers["given"]
    metrics.changes = <Change*> resized(metrics.changes, metrics.n_changes, sizeof(Change))
    metrics.freed = <int32_t*> resized(metrics.freed, metrics.n_freed, sizeof(int32_t))
    copy_in(metrics.changes, parts["changes"], metrics.n_changes, sizeof(Change))
    copy_in(metrics.freed, parts["given"], metrics.n_freed, sizeof(int32_t))
    copy_in(&metrics.used[0], parts["used"], nodes, sizeof(int32_t))
    copy_in(&metrics.fresh[0], parts["fresh"], nodes, sizeof(int32_t))
    copy_in(&metrics.touched[0], parts["touched"], nodes, sizeof(int32_t))
    copy_in(&metrics.mark[0], parts["mark"], nodes, sizeof(int64_t))
    copy_in(&metrics.now, parts["now"], 1, sizeof(Row))
    copy_in(&metrics.at_capacity, parts["at_capacity"], 1, sizeof(Row))
    copy_in(&metrics.area[0], parts["area"], N_AREAS, sizeof(double))
    return check_metrics(metrics)


cdef int check_metrics(ClusterMetrics metrics) except -1:
    """Nodes and GPUs of the metrics are there: totals are looked up by them."""
    cdef int64_t nodes = metrics.used.shape[0] - 1, most = metrics.totals__sut.shape[1] - 1, k, node
    cdef int64_t gpus = metrics.node_of_gpu.shape[0]
    cdef const Change* change
    freed = [0] * (nodes + 1)
    if not 0 <= metrics.n_touched <= nodes:
        raise ValueError(f"{metrics.n_touched} nodes in use of {nodes}")
    for k in range(metrics.n_touched):
        if not 0 <= metrics.touched[k] < nodes:
            raise ValueError(f"touched[{k}] = {metrics.touched[k]} (allowed: 0 to {nodes - 1})")
    check_marks(metrics, nodes)
    for k in range(metrics.n_freed):
        if not 0 <= metrics.freed[k] < gpus:
            raise ValueError(f"given[{k}] = {metrics.freed[k]} (allowed: 0 to {gpus - 1})")
        freed[metrics.node_of_gpu[metrics.freed[k]]] += 1
    for node in range(nodes):
        if not freed[node] <= metrics.used[node] <= most or not 0 <= metrics.fresh[node] <= most:
            raise ValueError(f"used[{node}] = {metrics.used[node]} (allowed: {freed[node]} to {most})")
    for k in range(metrics.n_changes):
        change = &metrics.changes[k]
        if not (isfinite(change.t) and change.num_gpu >= 0 and 0 <= change.at and change.finished in (0, 1)):
            raise ValueError(f"changes[{k}] at {change.t} s of {change.num_gpu} GPUs")
        # An arrival gives nothing back; a departure lists its GPUs, or none if others still hold them.
        if change.kind == DEPARTURE and change.at + change.num_gpu > metrics.n_freed:
            raise ValueError(f"changes[{k}] gives back GPUs up to {change.at + change.num_gpu} of {metrics.n_freed}")
        if change.kind not in (DEPARTURE, ARRIVAL):
            raise ValueError(f"changes[{k}] of kind {change.kind}")
    for k in range(N_AREAS):
        if not (isfinite(metrics.area[k]) and metrics.area[k] >= 0):
            raise ValueError(f"area[{k}] = {metrics.area[k]}")
    check_row(&metrics.now)
    return check_row(&metrics.at_capacity)


cdef int check_marks(ClusterMetrics metrics, int64_t nodes) except -1:
    """The nodes in use are those that the last round marked, each once: the next round adds those without its mark."""
    cdef int64_t node
    marked = set()
    for node in range(nodes):
        if not -1 <= metrics.mark[node] <= metrics.round_number:
            raise ValueError(f"mark[{node}] = {metrics.mark[node]} (allowed: -1 to {metrics.round_number})")
        if metrics.mark[node] == metrics.round_number:
            marked.add(node)
    touched = [metrics.touched[node] for node in range(metrics.n_touched)]
    if len(touched) != len(marked) or set(touched) != marked:
        raise ValueError(f"touched: {len(touched)} nodes, of which the last round marked {len(marked)}")
    return 0


cdef int check_row(const Row* row) except -1:
    """No count and no total of a row of metrics is below 0."""
    cdef int k
    cdef bint fine = isfinite(row.t)
    for k in range(N_COUNTS):
        fine = fine and row.counts[k] >= 0
    for k in range(N_TOTALS):
        fine = fine and row.totals[k] >= 0
    if not fine:
        raise ValueError(f"a row of metrics at {row.t} s, or with a count below 0")
    return 0
