"""Figures computed for a node state, stored by state and pod class for reuse.

Points of a node for a pod class follow from the node's kind, the CPU and devices left on it and the
class. Equal states get one number and one row of figures; each frequent pod class has its place in
every row, a lane. Fragmentation depends on less of a state: neither on the order of the devices nor on
differences of CPU that satisfy the same requests, now and after a pod of any of the classes.

When the rows would exceed the allowed memory, all states are dropped, so the memo holds recent ones.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove, memset
from fastsim_ext.memory cimport ahead, ahead_line, ahead_pages
from fastsim_ext.types cimport MAX_GPUS, Node, Pod

cdef enum:
    MOST_LANES = 512
    FIRST_STATES = 1024
    LEAST_STATES = 16    # always allowed, whatever their size
    FIRST_LANES = 32     # rows are read in pieces of this many lanes
    LINE = 64            # bytes of a cache line
    WIDE = 64            # beyond so many lanes a row grows by half of that

ctypedef fused figure_t:
    int8_t
    int16_t


cdef inline uint64_t mixed(const uint64_t* key, int words) noexcept nogil:
    """64-bit hash of a state."""
    cdef uint64_t h = 0x9E3779B97F4A7C15
    cdef int i
    for i in range(words):
        h = (h ^ key[i]) * <uint64_t> 0xBF58476D1CE4E5B9
        h ^= h >> 29
    return h


cdef inline bint equal(const uint64_t* a, const uint64_t* b, int words) noexcept nogil:
    cdef uint64_t differing = 0
    cdef int i
    for i in range(words):
        differing |= a[i] ^ b[i]
    return differing == 0


cdef inline void sort(int16_t* values, int count) noexcept nogil:
    """Sort a few numbers in falling order."""
    cdef int i, j
    cdef int16_t value
    for i in range(1, count):
        value = values[i]
        j = i
        while j > 0 and values[j - 1] < value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


cdef inline bint spread(const figure_t* row, int32_t unknown, const int32_t* at__c, const int32_t* skip__c, int first,
                        int last, int32_t* out__c) noexcept nogil:
    cdef int32_t figure
    cdef int32_t missing = 0
    cdef int c
    if at__c == NULL:
        for c in range(first, last):
            figure = row[c]
            figure = UNKNOWN if figure == unknown else figure
            out__c[c] = figure
            missing |= (figure == UNKNOWN) & (skip__c[c] == 0)
    else:
        for c in range(first, last):
            figure = row[at__c[c]]
            figure = UNKNOWN if figure == unknown else figure
            out__c[c] = figure
            missing |= (figure == UNKNOWN) & (skip__c[c] == 0)
    return missing


cdef bint memo_spread(const char* row, bint small, const int32_t* at__c, const int32_t* skip__c, int first, int last,
                      int32_t* out__c) noexcept nogil:
    """Figures of many columns from one row; whether one is UNKNOWN where ``skip`` is 0.

    ``at`` is the place of each column's figure in the row; NULL: its own number.
    """
    if small:
        return spread(<const int8_t*> row, SMALL_UNKNOWN, at__c, skip__c, first, last, out__c)
    return spread(<const int16_t*> row, UNKNOWN, at__c, skip__c, first, last, out__c)


cdef class Memo:
    """Figures by node state and pod class; ``most_bytes`` bounds the memory of keys and rows.

    With ``cpus``, the distinct CPU requests of a target workload in rising order (milli-CPU), states with equal
    fragmentation for that workload, now and after any pod, are one.
    """

    def __init__(self, int width, int terms_each, int64_t most_bytes, const int64_t[::1] cpus=None):
        self.width, self.words, self.terms_each, self.most_bytes = width, 2 + (width + 3) // 4, terms_each, most_bytes
        self.cpus, self.coarse = cpus, cpus is not None
        self.lanes = <Pod*> calloc(MOST_LANES, sizeof(Pod))
        if self.lanes == NULL:
            raise MemoryError()
        self.reserve(self.affordable(FIRST_STATES, FIRST_LANES))
        self.resize_rows(self.state_room, FIRST_LANES)

    def __dealloc__(self):
        free(self.lanes)
        free(self.keys)
        free(self.memory)
        free(self.table)
        free(self.marks)

    @property
    def bytes(self):
        """Memory of keys, rows and table, in bytes."""
        return self.state_room * (8 * self.words + self.row_bytes(self.lane_room) + 16)

    def number(self, int32_t kind, int64_t cpu_left, gpu_left):
        """The number of a state, new or known: kind of node, milli-CPU left, milli of each device."""
        cdef Node node
        cdef Key key
        cdef int32_t[MAX_GPUS] left
        if len(gpu_left) != self.width:
            raise ValueError(f"a state has {self.width} devices")
        for i in range(len(gpu_left)):
            left[i] = gpu_left[i]
        node.kind, node.cpu_left, node.gpu_left, node.num_gpu = kind, cpu_left, &left[0], self.width
        self.describe(&node, &key)
        return self.state(&key)

    def place(self, int64_t cpu, int64_t mem, int num_gpu, int milli, uint64_t models):
        """The lane of a pod class, new or known, or -1 if all are taken; units as in WorkTable.add_class."""
        cdef Pod pod = Pod(cpu, mem, num_gpu, milli, models, 0)
        return self.lane(&pod)

    def reorder(self, order):
        """Reorder the lanes: the class at ``order[k]`` moves to ``k``; classes not in ``order`` are dropped."""
        cdef int32_t[MOST_LANES] places
        if len(set(order)) != len(order) or not all(0 <= place < self.n_lanes for place in order):
            raise IndexError(f"found places {list(order)}, expected some of {self.n_lanes}, each once")
        for k in range(len(order)):
            places[k] = order[k]
        self.reorder_lanes(&places[0], len(order))

    def figure(self, int64_t state, int64_t place, int64_t term):
        """The figure of a state, a pod class and a term, or None."""
        self.check_known(state, place, term)
        figure = memo_figure(self.row(state), place * self.terms_each + term, self.coarse)
        return None if figure == UNKNOWN else figure

    def keep(self, int64_t state, int64_t place, int64_t term, int32_t figure):
        """Store the figure of a state, a pod class and a term."""
        self.check_known(state, place, term)
        memo_keep(self.row(state), place * self.terms_each + term, self.coarse, figure)

    cdef int check_known(self, int64_t state, int64_t place, int64_t term) except -1:
        """Raise IndexError unless state, place and term exist."""
        if not (0 <= state < self.n_states and 0 <= place < self.n_lanes and 0 <= term < self.terms_each):
            raise IndexError(f"no figure for state {state}, place {place}, term {term}")
        return 0

    cdef void describe(self, const Node* node, Key* key) noexcept nogil:
        """The key of a node's state; prefetches its place in the table."""
        cdef int16_t[MAX_GPUS] left
        cdef int g
        for g in range(self.width):
            left[g] = <int16_t> node.gpu_left[g]
        if self.coarse:
            sort(&left[0], node.num_gpu)
        key.words[self.words - 1] = 0
        key.words[0], key.words[1] = node.kind, self.floor_cpu(node.cpu_left) if self.coarse else node.cpu_left
        memcpy(&key.words[2], &left[0], self.width * sizeof(int16_t))
        key.mix = mixed(&key.words[0], self.words)
        ahead(&self.table[<int64_t> (key.mix & <uint64_t> self.mask)])

    cdef void prefetch(self, const Key* key) noexcept nogil:
        """Prefetch the figures of a state, if it is known."""
        cdef int64_t at = <int64_t> (key.mix & <uint64_t> self.mask)
        cdef int64_t state, i
        cdef const char* row
        while self.table[at] != 0:
            if self.table[at] >> 32 == key.mix >> 32:
                state = <int64_t> <uint32_t> self.table[at] - 1
                ahead(self.keys + state * self.words)
                row = self.row(state)
                for i in range(self.row_bytes(self.n_lanes) // LINE + 1):
                    ahead(row + i * LINE)
                return
            at = (at + 1) & self.mask

    cdef int32_t state(self, const Key* key) except -1 nogil:
        """The number of a state, new or known."""
        cdef int64_t state, at
        if self.n_states == self.state_room:
            if self.affordable(2 * self.state_room, self.lane_room) > self.state_room:
                self.reserve(2 * self.state_room)
            else:
                self.clear()
        at = <int64_t> (key.mix & <uint64_t> self.mask)
        while self.table[at] != 0:
            if self.table[at] >> 32 == key.mix >> 32:
                state = <int64_t> <uint32_t> self.table[at] - 1
                if equal(self.keys + state * self.words, &key.words[0], self.words):
                    return <int32_t> state
            at = (at + 1) & self.mask
        memcpy(self.keys + self.n_states * self.words, &key.words[0], self.words * sizeof(uint64_t))
        self.n_states += 1
        self.table[at] = (key.mix >> 32 << 32) | <uint64_t> self.n_states
        return <int32_t> (self.n_states - 1)

    cdef int32_t lane(self, const Pod* pod) except -2 nogil:
        """The lane of a pod class, new or known; -1 if all are taken."""
        cdef int32_t i
        cdef const Pod* other
        for i in range(self.n_lanes):
            other = &self.lanes[i]
            if (other.cpu == pod.cpu and other.mem == pod.mem and other.num_gpu == pod.num_gpu
                    and other.milli == pod.milli and other.models == pod.models):
                return i
        if self.n_lanes == MOST_LANES:
            return -1
        if self.n_lanes == self.lane_room:
            self.widen(self.lane_room + min(self.lane_room, WIDE // 2))
        if self.coarse:
            if self.n_lanes == 0:
                self.add_marks(0)
            self.add_marks(pod.cpu)
        self.lanes[self.n_lanes] = pod[0]
        self.n_lanes += 1
        return self.n_lanes - 1

    cdef int64_t row_bytes(self, int lanes) noexcept nogil:
        """Bytes of a row for so many pod classes."""
        return <int64_t> self.terms_each * lanes * (1 if self.coarse else 2)

    cdef char* row(self, int64_t state) noexcept nogil:
        """The figures of a state; those of a pod class begin at its lane times ``terms_each``."""
        return self.rows + state * self.row_bytes(self.lane_room)

    cdef void blank(self, int64_t state, int64_t first, int64_t last) noexcept nogil:
        """Set the figures from ``first`` to before ``last`` of a state to UNKNOWN."""
        cdef char* row = self.row(state)
        cdef int64_t i
        if self.coarse:
            memset(row + first, SMALL_UNKNOWN, last - first)
            return
        for i in range(first, last):
            (<int16_t*> row)[i] = UNKNOWN

    cdef int64_t floor_cpu(self, int64_t cpu_left) noexcept nogil:
        """The least CPU that satisfies the same requests, now and after a pod of any class; -1: none."""
        cdef int64_t strip = min(cpu_left >> STRIP, STRIPS)
        cdef int64_t low = self.strip_start[strip]
        cdef int64_t high = self.strip_start[strip + 1]
        cdef int64_t middle
        while low < high:
            middle = (low + high) // 2
            if self.marks[middle] <= cpu_left:
                low = middle + 1
            else:
                high = middle
        return self.marks[low - 1] if low > 0 else -1

    cdef int add_marks(self, int64_t taken) except -1 nogil:
        """Distinguish states by the requests that are satisfied after ``taken`` milli-CPU more are used.

        Rows stay valid: a row belongs to the lower end of its range of CPU, and for the classes so far all of
        that range is equal. But nodes may now be in another state than before.
        """
        cdef int64_t n = self.cpus.shape[0]
        cdef int64_t* merged = <int64_t*> malloc((self.n_marks + n + 1) * sizeof(int64_t))
        cdef int64_t i = 0
        cdef int64_t j = 0
        cdef int64_t count = 0
        cdef int64_t value
        if merged == NULL:
            with gil:
                raise MemoryError()
        while i < self.n_marks or j < n:
            if j == n or (i < self.n_marks and self.marks[i] <= self.cpus[j] + taken):
                value = self.marks[i]
                i += 1
            else:
                value = self.cpus[j] + taken
                j += 1
            if count == 0 or merged[count - 1] != value:
                merged[count] = value
                count += 1
        self.generation += count > self.n_marks
        free(self.marks)
        self.marks, self.n_marks = merged, count
        j = 0
        for i in range(STRIPS + 1):
            while j < count and self.marks[j] < i << STRIP:
                j += 1
            self.strip_start[i] = j
        self.strip_start[STRIPS + 1] = count
        return 0

    cdef int64_t affordable(self, int64_t room, int lanes) noexcept nogil:
        """The states that fit ``most_bytes`` with so many lanes: ``room``, halved as often as needed."""
        cdef int64_t bytes_each = sizeof(uint64_t) * self.words + self.row_bytes(lanes)
        while room > LEAST_STATES and room * bytes_each > self.most_bytes:
            room //= 2
        return room

    cdef int reserve(self, int64_t room) except -1 nogil:
        """Allocate room for so many states, a power of two and no fewer than are known."""
        cdef int64_t i, at
        cdef uint64_t mix
        cdef uint64_t* keys = <uint64_t*> realloc(self.keys, room * self.words * sizeof(uint64_t))
        if keys != NULL:
            self.keys = keys
        free(self.table)
        self.table = <uint64_t*> calloc(2 * room, sizeof(uint64_t))
        if keys == NULL or self.table == NULL:
            with gil:
                raise MemoryError()
        ahead_pages(self.keys, room * self.words * sizeof(uint64_t))
        ahead_pages(self.table, 2 * room * sizeof(uint64_t))
        self.mask = 2 * room - 1
        for i in range(self.n_states):
            mix = mixed(self.keys + i * self.words, self.words)
            at = <int64_t> (mix & <uint64_t> self.mask)
            while self.table[at] != 0:
                at = (at + 1) & self.mask
            self.table[at] = (mix >> 32 << 32) | <uint64_t> (i + 1)
        self.resize_rows(room, self.lane_room)
        return 0

    cdef int widen(self, int lanes) except -1 nogil:
        """Grow every row to so many lanes; if fewer states fit then, drop them all."""
        cdef int64_t room = self.affordable(self.state_room, lanes)
        if room < self.state_room:
            self.clear()
            self.reserve(room)
        self.resize_rows(self.state_room, lanes)
        return 0

    cdef int resize_rows(self, int64_t room, int lanes) except -1 nogil:
        """Move the rows to another size; new figures are UNKNOWN."""
        cdef int64_t i
        cdef int64_t before = self.state_room
        cdef int64_t filled = self.lane_room * self.terms_each
        cdef int64_t old = self.row_bytes(self.lane_room)
        cdef int64_t wide = self.row_bytes(lanes)
        cdef int64_t gap = self.rows - <char*> self.memory
        cdef void* memory = realloc(self.memory, room * wide + LINE)
        cdef char* rows = <char*> ahead_line(memory)
        if memory == NULL:
            with gil:
                raise MemoryError()
        if rows - <char*> memory != gap:
            memmove(rows, <char*> memory + gap, min(before, room) * old)
        ahead_pages(rows, room * wide)
        self.memory = memory
        self.rows, self.state_room, self.lane_room = rows, room, lanes
        i = before if wide > old else 0
        while i > 0:    # from the end, because rows move up
            i -= 1
            memmove(rows + i * wide, rows + i * old, old)
            self.blank(i, filled, lanes * self.terms_each)
        for i in range(before, room):
            self.blank(i, 0, lanes * self.terms_each)
        return 0

    cdef int reorder_lanes(self, const int32_t* order__l, int count) except -1 nogil:
        """Reorder the lanes, see reorder(); dropped ones become UNKNOWN."""
        cdef int32_t[MOST_LANES] moved       # most lanes stay: only these are copied in every row
        cdef int64_t size = self.row_bytes(1)
        cdef char* fresh = <char*> malloc(max(self.row_bytes(count), 1))
        cdef Pod* lanes = <Pod*> calloc(MOST_LANES, sizeof(Pod))
        cdef char* row
        cdef int64_t i
        cdef int k
        cdef int n_moved = 0
        if fresh == NULL or lanes == NULL:
            free(fresh)
            free(lanes)
            with gil:
                raise MemoryError()
        for k in range(count):
            lanes[k] = self.lanes[order__l[k]]
            if order__l[k] != k:
                moved[n_moved] = k
                n_moved += 1
        for i in range(self.n_states):
            row = self.row(i)
            for k in range(n_moved):
                memcpy(fresh + k * size, row + order__l[moved[k]] * size, size)
            for k in range(n_moved):
                memcpy(row + moved[k] * size, fresh + k * size, size)
            self.blank(i, count * self.terms_each, self.n_lanes * self.terms_each)
        free(self.lanes)
        free(fresh)
        self.lanes, self.n_lanes = lanes, count
        return 0

    cdef void clear(self) noexcept nogil:
        """Drop all states; pod classes keep their lanes."""
        cdef int64_t i
        memset(self.table, 0, (self.mask + 1) * sizeof(uint64_t))
        for i in range(self.n_states):
            self.blank(i, 0, self.lane_room * self.terms_each)
        self.forgotten += self.n_states
        self.n_states = 0
        self.generation += 1

    cpdef int verify(self) except -1:
        """Check that every state is found by its key and that no two are equal."""
        cdef int64_t i, at, other
        cdef uint64_t mix
        for i in range(self.n_states):
            mix = mixed(self.keys + i * self.words, self.words)
            at = <int64_t> (mix & <uint64_t> self.mask)
            while self.table[at] != (mix >> 32 << 32) | <uint64_t> (i + 1):
                assert self.table[at] != 0, f"state {i} cannot be found"
                other = <int64_t> <uint32_t> self.table[at] - 1
                assert not equal(self.keys + other * self.words, self.keys + i * self.words, self.words), (
                    f"states {i} and {other} are equal")
                at = (at + 1) & self.mask
        return 0
