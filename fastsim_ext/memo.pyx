"""What was worked out about a node's state, kept for whoever meets that state again.

Points of a node for a pod class follow from the node's kind, the CPU and devices it has left and the
class. Equal states get one number; a row of figures belongs to it, a few for each pod class that asks
often. Fragmentation asks less of a state: it does not tell one order of the devices from another, nor
two amounts of CPU that satisfy the same requests, now and after any of the classes came.

When the rows would take more memory than allowed, everything is forgotten and collected anew, so what
is kept is what was met lately.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset
from fastsim_ext.ahead cimport ahead
from fastsim_ext.types cimport MAX_GPUS, Node, Pod

cdef enum:
    MOST_LANES = 512
    FIRST_STATES = 1024
    LEAST_STATES = 16    # always allowed, whatever they take
    FIRST_LANES = 16
    LINE = 32            # figures of one cache line


cdef inline uint64_t mixed(const int32_t* key, int words) noexcept nogil:
    """64 well-mixed bits of a state."""
    cdef uint64_t h = 0x9E3779B97F4A7C15
    cdef int i
    for i in range(words):
        h = (h ^ <uint32_t> key[i]) * <uint64_t> 0xBF58476D1CE4E5B9
        h ^= h >> 29
    return h


cdef inline void sort(int32_t* values, int count) noexcept nogil:
    """Put a few numbers in falling order."""
    cdef int i, j
    cdef int32_t value
    for i in range(1, count):
        value = values[i]
        j = i
        while j > 0 and values[j - 1] < value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


cdef class Memo:
    """Figures by node state and pod class; ``most_bytes`` bounds what keys and rows take.

    With ``cpus``, the distinct CPU requests of a target workload in rising order (milli-CPU), states that
    fragmentation for that workload cannot tell apart are one.
    """

    def __init__(self, int width, int each, int64_t most_bytes, const int64_t[::1] cpus=None):
        self.width, self.words, self.each, self.most_bytes = width, 3 + width, each, most_bytes
        self.cpus, self.coarse = cpus, cpus is not None
        self.lanes = <Pod*> calloc(MOST_LANES, sizeof(Pod))
        if self.lanes == NULL:
            raise MemoryError()
        self.reserve(self.affordable(FIRST_STATES, FIRST_LANES))
        self.resize_rows(self.state_room, FIRST_LANES)

    def __dealloc__(self):
        free(self.lanes)
        free(self.keys)
        free(self.rows)
        free(self.table)
        free(self.marks)

    @property
    def bytes(self):
        """Memory of keys, rows and table, in bytes."""
        return self.state_room * (4 * self.words + 2 * self.each * self.lane_room + 8)

    def number(self, int32_t kind, int64_t cpu_left, gpu_left):
        """The number of a state, new or known: kind of node, milli-CPU left, milli of each device."""
        cdef Node node
        cdef int32_t[MAX_GPUS] left
        if len(gpu_left) != self.width:
            raise ValueError(f"a state has {self.width} devices")
        for i in range(len(gpu_left)):
            left[i] = gpu_left[i]
        node.cpu_left, node.gpu_left, node.num_gpu = cpu_left, &left[0], self.width
        return self.state(kind, &node)

    def place(self, int64_t cpu, int64_t mem, int num_gpu, int milli, uint64_t models):
        """The place of a pod class in every row, new or known, or -1; units as in WorkTable.add_class."""
        cdef Pod pod = Pod(cpu, mem, num_gpu, milli, models, 0)
        return self.lane(&pod)

    def figure(self, int64_t state, int64_t place, int64_t term):
        """What is known of a state, a pod class and a term, or None."""
        self.known(state, place, term)
        figure = self.figures(<int32_t> state, <int32_t> place)[term]
        return None if figure == UNKNOWN else figure

    def keep(self, int64_t state, int64_t place, int64_t term, int32_t figure):
        """Keep what was worked out for a state, a pod class and a term."""
        self.known(state, place, term)
        memo_keep(self.figures(<int32_t> state, <int32_t> place) + term, figure)

    cdef int known(self, int64_t state, int64_t place, int64_t term) except -1:
        """Refuse what has no figure."""
        if not (0 <= state < self.n_states and 0 <= place < self.n_lanes and 0 <= term < self.each):
            raise IndexError(f"no figure for state {state}, place {place}, term {term}")
        return 0

    cdef int32_t state(self, int32_t kind, const Node* node) except -1 nogil:
        """The number of the state a node is in, new or known."""
        cdef int32_t* key
        cdef int64_t at
        cdef int64_t cpu = self.floor_cpu(node.cpu_left) if self.coarse else node.cpu_left
        if self.n_states == self.state_room:
            if self.affordable(2 * self.state_room, self.lane_room) > self.state_room:
                self.reserve(2 * self.state_room)
            else:
                self.forget()
        key = self.keys + self.n_states * self.words
        key[0] = kind
        memcpy(&key[1], &cpu, sizeof(int64_t))
        memcpy(&key[3], node.gpu_left, self.width * sizeof(int32_t))
        if self.coarse:
            sort(&key[3], node.num_gpu)
        at = <int64_t> (mixed(key, self.words) & <uint64_t> self.mask)
        while self.table[at] != 0:
            self.expect(self.table[at] - 1)
            if memcmp(self.keys + <int64_t> (self.table[at] - 1) * self.words, key, self.words * sizeof(int32_t)) == 0:
                return self.table[at] - 1
            at = (at + 1) & self.mask
        self.n_states += 1
        self.table[at] = <int32_t> self.n_states
        return <int32_t> (self.n_states - 1)

    cdef void expect(self, int32_t state) noexcept nogil:
        """The figures of a state will be asked for."""
        cdef int i
        for i in range(self.n_lanes * self.each // LINE + 1):
            ahead(self.figures(state, 0) + i * LINE)

    cdef int32_t lane(self, const Pod* pod) except -2 nogil:
        """The place of a pod class in every row, new or known; -1 if there is none left."""
        cdef int32_t i
        cdef const Pod* known
        for i in range(self.n_lanes):
            known = &self.lanes[i]
            if (known.cpu == pod.cpu and known.mem == pod.mem and known.num_gpu == pod.num_gpu
                    and known.milli == pod.milli and known.models == pod.models):
                return i
        if self.n_lanes == MOST_LANES:
            return -1
        if self.n_lanes == self.lane_room:
            self.widen(2 * self.lane_room)
        if self.coarse:
            if self.n_lanes == 0:
                self.mark(0)
            self.mark(pod.cpu)
        self.lanes[self.n_lanes] = pod[0]
        self.n_lanes += 1
        return self.n_lanes - 1

    cdef int16_t* figures(self, int32_t state, int32_t lane) noexcept nogil:
        """The figures of a pod class in a state."""
        return self.rows + (<int64_t> state * self.lane_room + lane) * self.each

    cdef int64_t floor_cpu(self, int64_t cpu_left) noexcept nogil:
        """The least CPU left that satisfies the same requests, now and after any of the classes; -1: none."""
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

    cdef int mark(self, int64_t taken) except -1 nogil:
        """Tell apart from now on whether requests are satisfied after so much CPU was taken.

        What is known stays true: a row belongs to the lower end of its range, and the classes it knows
        cannot tell the parts of that range apart. But nodes may now be in another state than they were.
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
        """Room for so many states, or for fewer if with so many pod classes they would take too much."""
        cdef int64_t bytes_each = sizeof(int32_t) * self.words + sizeof(int16_t) * <int64_t> self.each * lanes
        while room > LEAST_STATES and room * bytes_each > self.most_bytes:
            room //= 2
        return room

    cdef int reserve(self, int64_t room) except -1 nogil:
        """Room for so many states, a power of two, and no fewer than are known."""
        cdef int64_t i, at
        cdef int32_t* keys = <int32_t*> realloc(self.keys, room * self.words * sizeof(int32_t))
        if keys != NULL:
            self.keys = keys
        free(self.table)
        self.table = <int32_t*> calloc(2 * room, sizeof(int32_t))
        if keys == NULL or self.table == NULL:
            with gil:
                raise MemoryError()
        self.mask = 2 * room - 1
        for i in range(self.n_states):
            at = <int64_t> (mixed(self.keys + i * self.words, self.words) & <uint64_t> self.mask)
            while self.table[at] != 0:
                at = (at + 1) & self.mask
            self.table[at] = <int32_t> (i + 1)
        self.resize_rows(room, self.lane_room)
        return 0

    cdef int widen(self, int lanes) except -1 nogil:
        """Room for more pod classes in every row, and if need be for fewer states, which are forgotten then."""
        cdef int64_t room = self.affordable(self.state_room, lanes)
        if room < self.state_room:
            self.forget()
            self.reserve(room)
        self.resize_rows(self.state_room, lanes)
        return 0

    cdef int resize_rows(self, int64_t room, int lanes) except -1 nogil:
        """Lay the rows out anew; what was not known stays unknown."""
        cdef int64_t i, j
        cdef int64_t old = self.lane_room * self.each
        cdef int64_t wide = lanes * self.each
        cdef int16_t* rows = <int16_t*> realloc(self.rows, max(room * wide, 1) * sizeof(int16_t))
        if rows == NULL:
            with gil:
                raise MemoryError()
        i = self.state_room if wide > old else 0
        while i > 0:    # from the end, because every row moves up
            i -= 1
            j = old
            while j > 0:
                j -= 1
                rows[i * wide + j] = rows[i * old + j]
            for j in range(old, wide):
                rows[i * wide + j] = UNKNOWN
        for i in range(self.state_room * wide, room * wide):
            rows[i] = UNKNOWN
        self.rows, self.state_room, self.lane_room = rows, room, lanes
        return 0

    cdef void forget(self) noexcept nogil:
        """Forget every state; pod classes keep their places."""
        cdef int64_t i
        memset(self.table, 0, (self.mask + 1) * sizeof(int32_t))
        for i in range(self.n_states * self.lane_room * self.each):
            self.rows[i] = UNKNOWN
        self.forgotten += self.n_states
        self.n_states = 0
        self.generation += 1

    cpdef int verify(self) except -1:
        """Every state is found where its key says, and no two are equal."""
        cdef int64_t i, at
        for i in range(self.n_states):
            at = <int64_t> (mixed(self.keys + i * self.words, self.words) & <uint64_t> self.mask)
            while self.table[at] != i + 1:
                assert self.table[at] != 0, f"state {i} cannot be found"
                assert memcmp(self.keys + <int64_t> (self.table[at] - 1) * self.words, self.keys + i * self.words,
                              self.words * sizeof(int32_t)) != 0, f"states {i} and {self.table[at] - 1} are equal"
                at = (at + 1) & self.mask
        return 0
