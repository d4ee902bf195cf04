"""Rules about the pods of a set in topology domains: how unevenly they are spread, whether a pod is apart or beside.

Spread: with a pod on a node, its domain may have at most ``max_skew`` pods of the set more than the domain with the
fewest. Domains are those of the counted nodes that are there. While they are fewer than ``min_domains``, the fewest
is 0. Apart: the domain has no pod of the set, or the node is in none. Beside: the domain has one. A pod of the set may
be the first one: anywhere in a domain, while no domain of its rules has any.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset
from fastsim_ext.memory cimport memory_grown
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.state.pod_membership cimport PodMembership
from fastsim_ext.state.pod_outcomes cimport PEERS, SPREAD


cdef class SpreadTable:
    """Rules of spread by class, and pods of each set by node."""

    def __init__(self, NodeTable nodes, PodMembership membership):
        self.nodes, self.membership, self.tallied = nodes, membership, -1

    def __dealloc__(self):
        free(self.of_class)
        free(self.rules)
        free(self.sets)
        free(self.domain)
        free(self.pods__sn)
        free(self.count__kd)

    def add(self, int cls, sets, rules):
        """Numbers of the sets that pods of a class are in; rules as (set, kind, largest skew, fewest domains, domain
        of each node as int32, -1 where it is not counted)."""
        cdef ClassSpread* of
        cdef SpreadRule* rule
        cdef int32_t which, kind
        cdef int n, nodes = max(self.nodes.count, 1)
        cdef const int32_t[::1] row
        if len(rules) > MAX_SPREAD:
            raise ValueError(f"{len(rules)} rules of spread, at most {MAX_SPREAD}")
        if cls >= self.n_classes:
            self.of_class = <ClassSpread*> memory_grown(self.of_class, 2 * cls + 64, sizeof(ClassSpread))
            memset(&self.of_class[self.n_classes], 0, (2 * cls + 64 - self.n_classes) * sizeof(ClassSpread))
            self.n_classes = 2 * cls + 64
        of = &self.of_class[cls]
        of.first_set, of.sets, of.first_rule, of.rules = self.n_sets, len(sets), self.n_rules, len(rules)
        self.sets = <int32_t*> memory_grown(self.sets, self.n_sets + len(sets) + 1, sizeof(int32_t))
        self.rules = <SpreadRule*> memory_grown(self.rules, self.n_rules + len(rules) + 1, sizeof(SpreadRule))
        for which in sets:
            self.count_set(which)
            self.sets[self.n_sets] = which
            self.n_sets += 1
        for which, kind, skew, fewest, row in rules:
            self.count_set(which)
            if row.shape[0] != self.nodes.count:
                raise ValueError(f"{row.shape[0]} domains for {self.nodes.count} nodes")
            self.domain = <int32_t*> memory_grown(self.domain, self.n_domain + nodes, sizeof(int32_t))
            rule = &self.rules[self.n_rules]
            rule.pods, rule.own, rule.max_skew, rule.min_domains = which, which in sets, skew, fewest
            rule.kind = kind
            rule.first, rule.domains = self.n_domain, 0
            for n in range(self.nodes.count):
                if row[n] >= self.nodes.count:
                    raise ValueError(f"domain {row[n]} of {self.nodes.count} nodes")
                self.domain[self.n_domain + n] = row[n]
                rule.domains = max(rule.domains, row[n] + 1)
            self.n_domain += self.nodes.count
            self.n_rules += 1
        if rules and self.count__kd == NULL:
            self.count__kd = <int32_t*> memory_grown(NULL, <int64_t> MAX_SPREAD * nodes, sizeof(int32_t))
        self.tallied = -1

    cdef int count_set(self, int32_t which) except -1:
        """Count the pods of a set, and of those with smaller numbers, from now on."""
        cdef int64_t nodes = max(self.nodes.count, 1)
        if which >= self.counted_sets:
            self.pods__sn = <int32_t*> memory_grown(self.pods__sn, (which + 1) * nodes, sizeof(int32_t))
            memset(&self.pods__sn[self.counted_sets * nodes], 0,
                   (which + 1 - self.counted_sets) * nodes * sizeof(int32_t))
            self.counted_sets = which + 1
        return 0

    cdef bint counts(self, int cls) noexcept nogil:
        """Whether pods of a class are counted by any rule."""
        return cls < self.n_classes and self.of_class[cls].sets > 0

    cdef bint has(self, int cls, int32_t which) noexcept nogil:
        """Whether pods of a class are in a set."""
        cdef const ClassSpread* of
        cdef int k
        if cls >= self.n_classes:
            return False
        of = &self.of_class[cls]
        for k in range(of.first_set, of.first_set + of.sets):
            if self.sets[k] == which:
                return True
        return False

    cdef void hold(self, int n, int cls, int sign) noexcept nogil:
        """Count a pod of a class that starts on (-1) or leaves (1) node ``n``."""
        cdef const ClassSpread* of
        cdef int k
        if cls >= self.n_classes:
            return
        of = &self.of_class[cls]
        for k in range(of.first_set, of.first_set + of.sets):
            self.pods__sn[<int64_t> self.sets[k] * self.nodes.count + n] -= sign

    cdef void shift(self, int32_t* moved, int cls, int viewer, int sign) noexcept nogil:
        """Count a pod of class ``cls`` that starts on (-1) or leaves (1) a node in the view of class ``viewer``."""
        cdef int k
        if viewer < self.n_classes:
            for k in range(self.of_class[viewer].rules):
                if self.has(cls, self.rules[self.of_class[viewer].first_rule + k].pods):
                    moved[k] -= sign

    cdef int refuses(self, int n, int cls, const int32_t* moved, Skew* skew) noexcept nogil:
        """The Reason why a rule of the class forbids node ``n``, or 0; ``skew`` is then what the first such rule finds.

        ``moved`` are pods by rule that a view has added to the node; NULL: none.
        """
        cdef const SpreadRule* of
        cdef int32_t d, here
        cdef int k
        if cls >= self.n_classes or self.of_class[cls].rules == 0:
            return 0
        if self.tallied != cls or self.tallied_moves != self.membership.moves:
            self.tally(cls)
        for k in range(self.of_class[cls].rules):
            of = &self.rules[self.of_class[cls].first_rule + k]
            d = self.domain[of.first + n]
            skew.found, skew.most = of.kind if of.kind != EVEN else 0, of.max_skew
            if d < 0 and of.kind >= APART:
                continue
            if d < 0:
                return SPREAD if of.kind == EVEN else PEERS
            here = self.count__kd[<int64_t> k * self.nodes.count + d]
            if moved != NULL:
                here += moved[k]
            if of.kind == EVEN:
                skew.found = here + of.own - min(self.least[k], here)
                if skew.found > of.max_skew:
                    return SPREAD
            elif (here > 0) == (of.kind >= APART) and not (of.kind == BESIDE and self.is_first(n, cls, moved)):
                return PEERS
        return 0

    cdef bint is_first(self, int n, int cls, const int32_t* moved) noexcept nogil:
        """Whether a pod of the class is of the set that it must be beside, and no domain of its rules has one."""
        cdef const SpreadRule* of
        cdef int32_t here
        cdef int k
        for k in range(self.of_class[cls].rules):
            of = &self.rules[self.of_class[cls].first_rule + k]
            if of.kind == BESIDE:
                here = moved[k] if moved != NULL and self.domain[of.first + n] >= 0 else 0
                if not of.own or self.least[k] + here > 0:
                    return False
        return True

    cdef bint restricts(self, int cls) noexcept nogil:
        """Whether the class has rules."""
        return cls < self.n_classes and self.of_class[cls].rules > 0

    cdef bint outside(self, int n, int cls) noexcept nogil:
        """Whether a rule of the class does not count node ``n``, which then hosts no pod of the class."""
        cdef const SpreadRule* of
        cdef int k
        if cls < self.n_classes:
            for k in range(self.of_class[cls].rules):
                of = &self.rules[self.of_class[cls].first_rule + k]
                if of.kind < APART and self.domain[of.first + n] < 0:
                    return True
        return False

    cdef void tally(self, int cls) noexcept nogil:
        """Count the pods of each rule of a class by domain."""
        cdef const SpreadRule* of
        cdef int32_t* row
        cdef int32_t d, there
        cdef int k, n
        for k in range(self.of_class[cls].rules):
            of = &self.rules[self.of_class[cls].first_rule + k]
            row = &self.count__kd[<int64_t> k * self.nodes.count]
            for d in range(of.domains):
                row[d] = -1
            for n in range(self.nodes.count):
                d = self.domain[of.first + n]
                if d >= 0 and self.nodes.present[n]:
                    row[d] = max(row[d], 0) + self.pods__sn[<int64_t> of.pods * self.nodes.count + n]
            there, self.least[k] = 0, 0
            for d in range(of.domains):
                if row[d] >= 0 and of.kind == BESIDE:
                    self.least[k] += row[d]
                elif row[d] >= 0:
                    self.least[k] = row[d] if there == 0 else min(self.least[k], row[d])
                    there += 1
            if of.kind == EVEN and there < of.min_domains:
                self.least[k] = 0
        self.tallied, self.tallied_moves = cls, self.membership.moves
