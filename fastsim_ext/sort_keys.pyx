"""The terms of sort keys, for jobs in rounds and for pods that wait: one table for both, see
``fastsim.scenario.sort_keys``."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t


cdef inline double share(double part, double whole) noexcept nogil:
    return part / whole if whole > 0 else 0.0


cdef double claim_term(int32_t term, const Claim* claim, const OrderContext* yard,
                       const double[::1] level_s) noexcept nogil:
    """One term of a key; ``level_s`` are the steps of the term LEVEL, GPU seconds."""
    cdef double gpus, cpu, memory, sum_of_parts
    cdef int32_t i
    if term == ARRIVAL:
        return claim.submit_s
    if term == PRIORITY:
        return claim.priority
    if term == REMAINING:
        return claim.left_s
    if term == SERVICE:
        return claim.attained_s * claim.gpus
    if term == ATTAINED:
        return claim.attained_s
    if term == FINISH_RATIO:
        if not claim.total_s > 0:
            return INFINITY
        if claim.total_s == INFINITY:    # it never falls behind
            return 1.0
        return (yard.now_s - claim.submit_s + claim.left_s) / claim.total_s
    if term == SERVICE_LEFT:
        return claim.left_s * claim.gpus if claim.gpus > 0 else 0.0
    if term == LEVEL:
        for i in range(level_s.shape[0]):
            if claim.attained_s * claim.gpus < level_s[i]:
                return i
        return level_s.shape[0]
    if term == WEIGHT:
        return claim.weight
    if term == GPUS:
        return claim.gpus
    if term == LAST:
        return claim.last_s
    gpus = share(claim.gpus, yard.gpus)
    cpu, memory = share(claim.cpu_milli, yard.cpu_milli), share(claim.memory_mib, yard.memory_mib)
    if term == DOMINANT:
        return max(gpus, max(cpu, memory))
    sum_of_parts = gpus + cpu + memory
    return sum_of_parts * claim.left_s if sum_of_parts > 0 else 0.0


def terms(numbers, claim, yard, const double[::1] level_s):
    """These terms of one claim: numbers by name, as in ``tests.reference.rounds.sort_keys``."""
    cdef Claim c = Claim(claim.submit_s, claim.last_s, claim.left_s, claim.total_s, claim.attained_s, claim.gpus,
                         claim.cpu_milli, claim.memory_mib, claim.weight, claim.priority)
    cdef OrderContext y = OrderContext(yard.now_s, yard.gpus, yard.cpu_milli, yard.memory_mib, False)
    return [claim_term(number, &c, &y, level_s) for number in numbers]
