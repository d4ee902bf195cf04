"""Scores of preferences by the formulas of kube-scheduler: 0 to 100 on each node that can host a pod.

Node affinity and images add points; taints are counted, and few are better. Spread and affinity between pods follow
from the pods of sets in domains at the moment. All but images are normalised over the nodes that can host the pod.
"""

cimport cython
from libc.math cimport log, round
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset
from fastsim_ext.memory cimport memory_grown
from fastsim_ext.online.topology_spread cimport SpreadTable
from fastsim_ext.state.node_table cimport NodeTable

cdef enum:
    BEST = 100


cdef class PreferenceTable:
    """Preferences by class, and pods of each set by node."""

    def __init__(self, NodeTable nodes, membership, weights):
        self.nodes, self.sets = nodes, SpreadTable(nodes, membership)
        for part in range(PARTS):
            self.weight[part] = weights[part]
        self.count__d = <int64_t*> memory_grown(NULL, max(nodes.count, 1), sizeof(int64_t))
        self.sum__f = <double*> memory_grown(NULL, max(nodes.count, 1), sizeof(double))

    def __dealloc__(self):
        free(self.of_class)
        free(self.wanted)
        free(self.rows)
        free(self.count__d)
        free(self.sum__f)

    def add_row(self, const int32_t[::1] row):
        """The place of a row with a number for each node, for ``add``."""
        cdef int64_t place = self.n_rows
        if row.shape[0] != self.nodes.count:
            raise ValueError(f"{row.shape[0]} numbers for {self.nodes.count} nodes")
        self.rows = <int32_t*> memory_grown(self.rows, place + self.nodes.count + 1, sizeof(int32_t))
        if self.nodes.count > 0:
            memcpy(&self.rows[place], &row[0], self.nodes.count * sizeof(int32_t))
        self.n_rows += self.nodes.count
        return place

    def add(self, int cls, sets, fixed, spread, near):
        """Preferences of a class, and the numbers of the sets that its pods are in.

        ``fixed``: places of the rows with points for node affinity, numbers of taints, and scores for images; -1
        without. ``spread``: (set, largest skew, place of the row of domains, number of domains), where a domain is -1
        on nodes that are passed over, and -2 less the domain on those whose pods do not count; of 0 domains each node
        is one. ``near``: (set, points for each pod, place of the row of domains, number of domains), -1 in no domain.
        """
        cdef ClassPreferences* of
        self.sets.add(cls, sets, ())
        for which, _, _, _ in (*spread, *near):
            self.sets.count_set(which)
        if cls >= self.n_classes:
            self.of_class = <ClassPreferences*> memory_grown(self.of_class, 2 * cls + 64, sizeof(ClassPreferences))
            memset(&self.of_class[self.n_classes], 0xFF, (2 * cls + 64 - self.n_classes) * sizeof(ClassPreferences))
            self.n_classes = 2 * cls + 64
        of = &self.of_class[cls]
        of.affinity, of.taints, of.images = fixed
        of.first_spread, of.spread = self.n_wanted, len(spread)
        of.first_near, of.near = self.n_wanted + len(spread), len(near)
        self.wanted = <SetPreference*> memory_grown(
            self.wanted, self.n_wanted + len(spread) + len(near) + 1, sizeof(SetPreference))
        self.take(of.first_spread, spread)
        self.take(of.first_near, near)
        self.n_wanted += len(spread) + len(near)

    cdef int take(self, int32_t first, wanted) except -1:
        """Write preferences about sets from number ``first`` on."""
        cdef SetPreference* one
        for which, weight, place, domains in wanted:
            one = &self.wanted[first]
            one.pods, one.weight, one.first, one.domains = which, weight, place, domains
            first += 1
        return 0

    cdef bint has(self, int cls) noexcept nogil:
        """Whether the class has preferences."""
        return cls < self.n_classes and self.of_class[cls].spread >= 0

    cdef void hold(self, int n, int cls, int sign) noexcept nogil:
        """Count a pod of a class that starts on (-1) or leaves (1) node ``n``."""
        self.sets.hold(n, cls, sign)

    cdef void add_totals(self, int cls, int count, const int32_t* feasible__f, int64_t* raw__f,
                         int64_t* total__f) noexcept nogil:
        """Add weight times points of every part to the totals of the feasible nodes."""
        cdef int part, f
        if not self.has(cls):
            return
        for part in range(PARTS):
            if self.weight[part] != 0:
                self.score(part, cls, count, feasible__f, raw__f)
                for f in range(count):
                    total__f[f] += self.weight[part] * raw__f[f]

    @cython.cdivision(True)
    cdef void score(self, int part, int cls, int count, const int32_t* feasible__f, int64_t* raw__f) noexcept nogil:
        """Points of one part on the feasible nodes; without preferences 0, and 100 for no taint to avoid."""
        cdef const ClassPreferences* of = &self.of_class[cls] if self.has(cls) else NULL
        cdef int64_t place = -1
        cdef int64_t most = 0
        cdef int f
        for f in range(count):
            raw__f[f] = BEST if part == TAINT_TOLERATION else 0
        if of == NULL:
            return
        if part == POD_SPREAD:
            self.score_spread(of, count, feasible__f, raw__f)
        elif part == POD_AFFINITY:
            self.score_near(of, count, feasible__f, raw__f)
        else:
            place = of.affinity if part == NODE_AFFINITY else of.taints if part == TAINT_TOLERATION else of.images
        if place < 0:
            return
        for f in range(count):
            most = max(most, self.rows[place + feasible__f[f]])
        for f in range(count):
            if part == IMAGE_LOCALITY:
                raw__f[f] = self.rows[place + feasible__f[f]]
            elif most > 0 and part == NODE_AFFINITY:
                raw__f[f] = <int64_t> self.rows[place + feasible__f[f]] * BEST // most
            elif most > 0:
                raw__f[f] = BEST - <int64_t> self.rows[place + feasible__f[f]] * BEST // most

    @cython.cdivision(True)
    cdef void score_spread(self, const ClassPreferences* of, int count, const int32_t* feasible__f,
                           int64_t* raw__f) noexcept nogil:
        """Points of spread: the fewer pods of the sets in a node's domains, the more; 0 where a label is missing."""
        cdef const SetPreference* wanted
        cdef double weight
        cdef int64_t here, least, most
        cdef int32_t d
        cdef int k, f, n, open_ = 0
        if of.spread <= 0:
            return
        for f in range(count):
            self.sum__f[f] = 0
        for k in range(of.spread):
            wanted = &self.wanted[of.first_spread + k]
            weight = log(<double> (self.seen_domains(wanted, count, feasible__f) + 2))
            self.tally(wanted)
            for f in range(count):
                n = feasible__f[f]
                d = self.rows[wanted.first + n]
                d = n if wanted.domains == 0 else -2 - d if d < -1 else d
                if d >= 0:
                    self.sum__f[f] = self.sum__f[f] + (
                        <double> self.count__d[d] * weight + <double> (wanted.weight - 1))
        wanted = &self.wanted[of.first_spread]
        least = most = 0
        for f in range(count):
            if self.rows[wanted.first + feasible__f[f]] != -1:
                here = <int64_t> round(self.sum__f[f])
                least, most = here if open_ == 0 else min(least, here), here if open_ == 0 else max(most, here)
                raw__f[f] = here
                open_ += 1
        for f in range(count):
            if self.rows[wanted.first + feasible__f[f]] != -1:
                raw__f[f] = BEST if most == 0 else BEST * (most + least - raw__f[f]) // most

    cdef int32_t seen_domains(self, const SetPreference* wanted, int count, const int32_t* feasible__f) noexcept nogil:
        """Number of domains among the feasible nodes that are not passed over."""
        cdef int32_t d, seen = 0
        cdef int f
        for f in range(wanted.domains):
            self.count__d[f] = 0
        for f in range(count):
            d = self.rows[wanted.first + feasible__f[f]]
            d = -2 - d if d < -1 else d
            if wanted.domains == 0:
                seen += d != -1
            elif d >= 0:
                seen += self.count__d[d] == 0
                self.count__d[d] = 1
        return seen

    @cython.cdivision(True)
    cdef void score_near(self, const ClassPreferences* of, int count, const int32_t* feasible__f,
                         int64_t* raw__f) noexcept nogil:
        """Points of affinity between pods: sums of weights, spread over 0 to 100 between the worst and the best."""
        cdef const SetPreference* wanted
        cdef int64_t least, most
        cdef int32_t d
        cdef int k, f
        if of.near <= 0 or count == 0:
            return
        for k in range(of.near):
            wanted = &self.wanted[of.first_near + k]
            self.tally(wanted)
            for f in range(count):
                d = feasible__f[f] if wanted.domains == 0 else self.rows[wanted.first + feasible__f[f]]
                if d >= 0:
                    raw__f[f] += wanted.weight * self.count__d[d]
        least = most = raw__f[0]
        for f in range(count):
            least, most = min(least, raw__f[f]), max(most, raw__f[f])
        for f in range(count):
            if most == least:
                raw__f[f] = 0
            else:
                raw__f[f] = <int64_t> (<double> BEST * (<double> (raw__f[f] - least) / <double> (most - least)))

    cdef void tally(self, const SetPreference* wanted) noexcept nogil:
        """Count the pods of a set by domain."""
        cdef const int32_t* pods = &self.sets.pods__sn[<int64_t> wanted.pods * self.nodes.count]
        cdef int32_t d
        cdef int n
        for n in range(wanted.domains):
            self.count__d[n] = 0
        for n in range(self.nodes.count):
            if wanted.domains == 0:
                self.count__d[n] = pods[n]
                continue
            d = self.rows[wanted.first + n]
            if d >= 0:
                self.count__d[d] += pods[n]
