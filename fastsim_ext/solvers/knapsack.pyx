"""One choice, or none, for each thing of each class, as cheap as possible, while rooms of several kinds suffice.

    minimise sum of cost[x] * taken[x]    with sum of size[x] * taken[x] <= room[k] for the columns x of each kind k
                                          and sum of taken[x] <= count[c] for the columns x of each class c

Without whole numbers this has a price for each kind of room, and a bound. A choice costs the bound, what its columns
cost beyond the best one of their class at these prices, and the price of all room that stays empty. So a search for
choices close to the bound takes few columns, leaves little room, and ends soon. HiGHS solves the same program,
which `fastsim/policies/solvers/multiple_choice.py` makes, for comparison.
"""

cimport cython
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset
from fastsim_ext.memory cimport memory_grown

cdef enum:
    NONE = -1
    SIDE = MOST_KINDS + 1              # of the basis: a row for each kind, and one for the plans' sum
    STEPS = 400                        # on the way to the best prices
    SLOTS = 1 << 16                    # for states already searched
    ROOM = 1 << 15                     # most states kept: half the slots, so that a search for a free one is short

cdef double SAME = 1e-9                # costs that differ by less are equal
cdef double PIVOT = 1e-10
cdef uint64_t MIXER = 0x9E3779B97F4A7C15

MOST = MOST_KINDS


@cython.final
cdef class Knapsack:
    """Columns stand class by class; one costs ``cost`` (below 0) and takes ``size`` from the room of its ``kind``."""

    def __cinit__(self, cost, size, kind, first, count, room):
        import numpy as np
        cdef int64_t things
        self.columns, self.classes, self.kinds = len(cost), len(count), len(room)
        if self.kinds > MOST_KINDS:
            raise ValueError(f"{self.kinds} kinds of rooms, {MOST_KINDS} at most")
        self.cost__x, self.size__x, self.kind__x = cost, size, kind
        self.first__c, self.count__c, self.room__k = first, count, room
        self.price, self.chosen = np.zeros(max(self.kinds, 1)), np.zeros(self.columns, np.int64)
        self.price__k, self.chosen__x = self.price, self.chosen
        things = int(count.sum())
        self.options = <Option*> memory_grown(NULL, self.columns + self.classes + 1, sizeof(Option))
        self.start__c = <int64_t*> memory_grown(NULL, self.classes + 1, sizeof(int64_t))
        self.order__c = <int64_t*> memory_grown(NULL, self.classes + 1, sizeof(int64_t))
        self.class__d = <int64_t*> memory_grown(NULL, things + 1, sizeof(int64_t))
        self.picked__d = <int64_t*> memory_grown(NULL, things + 1, sizeof(int64_t))
        self.best__d = <int64_t*> memory_grown(NULL, things + 1, sizeof(int64_t))
        self.most__dk = <int64_t*> memory_grown(NULL, (things + 1) * max(self.kinds, 1), sizeof(int64_t))

    def __dealloc__(self):
        free(self.options)
        free(self.start__c)
        free(self.order__c)
        free(self.class__d)
        free(self.picked__d)
        free(self.best__d)
        free(self.most__dk)
        free(self.marks)
        free(self.keys)

    # ------------------------------------------------------------------ the bound

    def bound(self):
        """No choice of whole things costs less than this."""
        cdef double[SIDE] use
        cdef double least
        cdef int k
        with nogil:
            self.improve_prices()
            least = self.plan(&self.price__k[0], use)
            for k in range(self.kinds):
                least -= self.price__k[k] * self.room__k[k]
        return least

    cdef double plan(self, const double* price, double* use) noexcept nogil:
        """The cheapest choice at these prices if rooms had no end: its cost with the prices, and the room it takes."""
        cdef double total = 0.0, least, cost
        cdef int64_t x, best
        cdef int c, k
        for k in range(self.kinds):
            use[k] = 0.0
        for c in range(self.classes):
            least, best = 0.0, NONE
            for x in range(self.first__c[c], self.first__c[c + 1]):
                cost = self.cost__x[x] + price[self.kind__x[x]] * self.size__x[x]
                if cost < least:
                    least, best = cost, x
            if best != NONE:
                total += self.count__c[c] * least
                use[self.kind__x[best]] += self.count__c[c] * self.size__x[best]
        return total

    @cython.cdivision(True)
    cdef int improve_prices(self) noexcept nogil:
        """The prices with the best bound: plans are mixed until no other plan would help (simplex by columns).

        The basis has empty rooms and plans. Prices that are not yet the best ones give a bound as well, only a lower
        one, so the search for prices may end at any time. Returns its steps.
        """
        cdef int m = self.kinds + 1
        cdef double[SIDE * SIDE] basis         # a column for each member: room it takes, and 1 for a plan
        cdef double[SIDE] cost, y, enter, direction, level, right, price, use
        cdef double top = -INFINITY, bound, worth, paid
        cdef int step, k, i, out
        memset(basis, 0, sizeof(basis))
        for i in range(m):
            basis[i * SIDE + i], cost[i] = 1.0, 0.0
            right[i] = self.room__k[i] if i < self.kinds else 1.0
        for step in range(STEPS):
            if not (solved(basis, cost, y, m, True) and solved(basis, right, level, m, False)):
                return step
            out = NONE
            for k in range(self.kinds):        # an empty room that would help enters first
                if y[k] > SAME and (out == NONE or y[k] > y[out]):
                    out = k
            for k in range(m):
                enter[k] = 1.0 if k == out else 0.0
            paid = 0.0
            if out == NONE:
                for k in range(self.kinds):
                    price[k] = max(-y[k], 0.0)
                worth = self.plan(price, use)
                bound = paid = worth
                for k in range(self.kinds):
                    enter[k] = use[k]
                    bound -= price[k] * self.room__k[k]
                    paid -= price[k] * use[k]
                enter[self.kinds] = 1.0
                if bound > top:
                    top = bound
                    memcpy(&self.price__k[0], price, self.kinds * sizeof(double))
                if worth >= y[self.kinds] - SAME:
                    return step
            if not solved(basis, enter, direction, m, False):
                return step
            out = leaving(level, direction, m)
            if out == NONE:
                return step
            for k in range(m):
                basis[k * SIDE + out] = enter[k]
            cost[out] = paid
        return STEPS

    # ------------------------------------------------------------------ the search

    def search(self, double reach, int64_t nodes, int64_t more):
        """The least cost beyond the bound, up to ``reach``, and ``chosen``; None if nothing was found.

        The search ends after so many ``nodes`` without a choice, or ``more`` after the first one.
        """
        cdef int64_t d, x
        if self.marks is NULL:
            self.marks = <Mark*> memory_grown(NULL, SLOTS, sizeof(Mark))
            memset(self.marks, 0, SLOTS * sizeof(Mark))
            self.keys = <int32_t*> memory_grown(NULL, SLOTS * (self.kinds + 2), sizeof(int32_t))
        self.stamp += 1
        self.filled, self.nodes, self.left, self.more = 0, 0, nodes, more
        self.has_best, self.best = False, reach + 2 * SAME
        with nogil:
            self.list_options(self.best)
            if self.fix_single():
                self.line_up()
                self.dive(0, 0, self.free__k, 0.0)
        self.ended = self.left > 0
        if not self.has_best:
            return None
        for d in range(self.depths):
            x = self.options[self.best__d[d]].column
            if x != NONE:
                self.chosen__x[x] += 1
        return self.best

    cdef void list_options(self, double reach) noexcept nogil:
        """List the options of each class with an extra cost within ``reach``: cheapest first, of equals the largest."""
        cdef int64_t x, n = 0, at
        cdef int c
        cdef double least
        cdef Option new
        for c in range(self.classes):
            self.start__c[c] = n
            least = 0.0
            for x in range(self.first__c[c], self.first__c[c + 1]):
                least = min(least, self.cost__x[x] + self.price__k[self.kind__x[x]] * self.size__x[x])
            for x in range(self.first__c[c] - 1, self.first__c[c + 1]):
                new.column, new.kind, new.size, new.extra = NONE, 0, 0, -least
                if x >= self.first__c[c]:
                    new.column, new.kind, new.size = x, self.kind__x[x], self.size__x[x]
                    new.extra = self.cost__x[x] + self.price__k[new.kind] * new.size - least
                if new.extra > reach:
                    continue
                at = n
                while at > self.start__c[c] and before(&new, &self.options[at - 1]):
                    self.options[at] = self.options[at - 1]
                    at -= 1
                self.options[at] = new
                n += 1
        self.start__c[self.classes] = n

    cdef bint fix_single(self) noexcept nogil:
        """Give classes with one option what they need; whether there is room, and in ``free__k`` what is left."""
        cdef const Option* only
        cdef int c, k
        cdef int64_t x
        for k in range(self.kinds):
            self.free__k[k] = self.room__k[k]
        for x in range(self.columns):
            self.chosen__x[x] = 0
        for c in range(self.classes):
            if self.start__c[c + 1] != self.start__c[c] + 1:
                continue
            only = &self.options[self.start__c[c]]
            if only.column != NONE:
                self.chosen__x[only.column] = self.count__c[c]
                self.free__k[only.kind] -= only.size * self.count__c[c]
                if self.free__k[only.kind] < 0:
                    return False
        return True

    cdef void line_up(self) noexcept nogil:
        """The things of the other classes in a row, large ones first, and the room that they can use."""
        cdef int c, k, classes = 0, at
        cdef int64_t d, o
        cdef int64_t[MOST_KINDS + 1] most
        self.depths = 0
        for c in range(self.classes):
            if self.start__c[c + 1] > self.start__c[c] + 1:
                at = classes
                while at > 0 and self.largest(c) > self.largest(self.order__c[at - 1]):
                    self.order__c[at] = self.order__c[at - 1]
                    at -= 1
                self.order__c[at] = c
                classes += 1
        for at in range(classes):
            for _ in range(self.count__c[self.order__c[at]]):
                self.class__d[self.depths] = self.order__c[at]
                self.depths += 1
        self.class__d[self.depths] = NONE
        for k in range(self.kinds):
            self.most__dk[self.depths * self.kinds + k] = 0
        for d in range(self.depths - 1, -1, -1):
            for k in range(self.kinds):
                most[k] = 0
            for o in range(self.start__c[self.class__d[d]], self.start__c[self.class__d[d] + 1]):
                most[self.options[o].kind] = max(most[self.options[o].kind], self.options[o].size)
            for k in range(self.kinds):
                self.most__dk[d * self.kinds + k] = self.most__dk[(d + 1) * self.kinds + k] + most[k]

    cdef int64_t largest(self, int64_t c) noexcept nogil:
        """The largest option of a class."""
        cdef int64_t most = 0, o
        for o in range(self.start__c[c], self.start__c[c + 1]):
            most = max(most, self.options[o].size)
        return most

    cdef void dive(self, int64_t depth, int64_t start, const int64_t* room, double extra) noexcept nogil:
        """Try all options of the thing at this depth, from ``start`` on, and go deeper."""
        cdef int64_t[MOST_KINDS + 1] rest
        cdef int64_t o, spare, c
        cdef double least = extra
        cdef int k
        if self.left <= 0:
            return
        for k in range(self.kinds):
            spare = room[k] - self.most__dk[depth * self.kinds + k]
            if spare > 0:
                least += self.price__k[k] * spare
        if least > self.best - SAME:
            return
        self.left -= 1
        self.nodes += 1
        if depth == self.depths:
            self.best = least
            memcpy(self.best__d, self.picked__d, self.depths * sizeof(int64_t))
            if not self.has_best:
                self.has_best, self.left = True, min(self.left, self.more)
            return
        if self.seen(depth, start, room, extra):
            return
        c = self.class__d[depth]
        memcpy(rest, room, self.kinds * sizeof(int64_t))
        for o in range(self.start__c[c] + start, self.start__c[c + 1]):
            k = <int> self.options[o].kind
            rest[k] = room[k] - self.options[o].size
            if rest[k] >= 0:
                self.picked__d[depth] = o
                spare = o - self.start__c[c] if self.class__d[depth + 1] == c else 0
                self.dive(depth + 1, spare, rest, extra + self.options[o].extra)
            rest[k] = room[k]

    @cython.cdivision(True)
    cdef bint seen(self, int64_t depth, int64_t start, const int64_t* room, double extra) noexcept nogil:
        """Whether this state was visited before at no more cost; if not, record the visit."""
        cdef int32_t[MOST_KINDS + 3] key
        cdef int width = self.kinds + 2, k
        cdef uint64_t mixed = 0
        cdef int64_t slot
        key[0], key[1] = <int32_t> depth, <int32_t> start
        for k in range(self.kinds):
            key[k + 2] = <int32_t> room[k]
        for k in range(width):
            mixed = (mixed ^ <uint64_t> key[k]) * MIXER
            mixed ^= mixed >> 29
        slot = <int64_t> (mixed % SLOTS)
        while self.marks[slot].stamp == self.stamp:
            if memcmp(&self.keys[slot * width], key, width * sizeof(int32_t)) == 0:
                if self.marks[slot].extra <= extra:
                    return True
                self.marks[slot].extra = extra
                return False
            slot = (slot + 1) % SLOTS
        if self.filled < ROOM:
            self.filled += 1
            self.marks[slot].stamp, self.marks[slot].extra = self.stamp, extra
            memcpy(&self.keys[slot * width], key, width * sizeof(int32_t))
        return False


cdef inline bint before(const Option* one, const Option* other) noexcept nogil:
    """Whether an option is tried first."""
    if fabs(one.extra - other.extra) > SAME:
        return one.extra < other.extra
    return one.size > other.size


@cython.cdivision(True)
cdef int leaving(const double* level, const double* direction, int m) noexcept nogil:
    """The member of the basis that leaves first; of equals the one with the largest pivot."""
    cdef double ratio, least = INFINITY
    cdef int i, out = NONE
    for i in range(m):
        if direction[i] <= PIVOT:
            continue
        ratio = max(level[i], 0.0) / direction[i]
        if ratio < least - SAME or (ratio <= least + SAME and direction[i] > direction[out]):
            least, out = min(ratio, least), i
    return out


@cython.cdivision(True)
cdef bint solved(const double* matrix, const double* right, double* solution, int m, bint turned) noexcept nogil:
    """The solution of a small square system (``turned``: of its transpose); whether there is one."""
    cdef double[SIDE * SIDE] a
    cdef double factor
    cdef int i, j, k, top
    for i in range(m):
        solution[i] = right[i]
        for j in range(m):
            a[i * SIDE + j] = matrix[j * SIDE + i] if turned else matrix[i * SIDE + j]
    for k in range(m):
        top = k
        for i in range(k + 1, m):
            if fabs(a[i * SIDE + k]) > fabs(a[top * SIDE + k]):
                top = i
        if fabs(a[top * SIDE + k]) < PIVOT:
            return False
        for j in range(m):
            a[k * SIDE + j], a[top * SIDE + j] = a[top * SIDE + j], a[k * SIDE + j]
        solution[k], solution[top] = solution[top], solution[k]
        for i in range(k + 1, m):
            factor = a[i * SIDE + k] / a[k * SIDE + k]
            for j in range(k, m):
                a[i * SIDE + j] -= factor * a[k * SIDE + j]
            solution[i] -= factor * solution[k]
    for k in range(m - 1, -1, -1):
        for j in range(k + 1, m):
            solution[k] -= a[k * SIDE + j] * solution[j]
        solution[k] /= a[k * SIDE + k]
    return True
