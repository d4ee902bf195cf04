"""The order of events and the queue of departures.

Only the nearest departures are sorted, in a heap that fits the cache. Later ones are in buckets, each for a
short interval of time, and those after all buckets in one array; neither is sorted. When the heap is empty the
next bucket goes to the heap, and after the last bucket the array is divided into buckets. So a departure costs
about the same among a thousand and among millions.
"""

from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy
from cpython.bytes cimport PyBytes_FromStringAndSize
from fastsim_ext.memory cimport ahead
from fastsim_ext.state.pod_table cimport Slot


cdef enum:
    FAN = 4
    FEW = 512            # departures that need no buckets
    BUCKET_SIZE = 128    # intended departures of a bucket
    SAMPLED = 1024       # departures sampled for the width of buckets
    NEAREST = 16         # the nearest of them, which determine it
    GROWTH = 4           # growth of the queue at which buckets are made again


cdef inline bint sooner(const Departure* a, const Departure* b) noexcept nogil:
    return a.t < b.t or (a.t == b.t and a.seq < b.seq)


cdef int64_t grown(void** block, int64_t room, int64_t size) except -1 nogil:
    """Grow an array of ``room`` items to twice the size and more; returns the new room."""
    cdef int64_t more = 2 * room + 64
    cdef void* fresh = realloc(block[0], more * size)
    if fresh == NULL:
        with gil:
            raise MemoryError()
    block[0] = fresh
    return more


cdef class DepartureQueue:
    """Departures by (time, sequence); the soonest one is ``items[0]``."""

    def __cinit__(self):
        self.soon = self.later = self.free_chunk = -1
        self.heap_limit = FEW

    def __dealloc__(self):
        free(self.items)
        free(self.beyond)
        free(self.buckets)
        free(self.chunks)

    def snapshot(self):
        """(every departure as bytes, how many were ever scheduled): all that restore() needs."""
        cdef int64_t b
        cdef int32_t chunk
        cdef int64_t count
        parts = [PyBytes_FromStringAndSize(<char*> self.items, self.n_items * sizeof(Departure)),
                 PyBytes_FromStringAndSize(<char*> self.beyond, self.n_beyond * sizeof(Departure))]
        for b in range(self.n_buckets):
            chunk, count = self.buckets[b].first, self.buckets[b].count
            while count > 0:
                some = (count - 1) % CHUNK + 1
                parts.append(PyBytes_FromStringAndSize(<char*> &self.chunks[chunk].items[0],
                                                       some * sizeof(Departure)))
                chunk, count = self.chunks[chunk].after, count - some
        return b"".join(parts), self.scheduled

    def restore(self, const unsigned char[::1] items, int64_t scheduled):
        """Insert the departures of a snapshot()."""
        cdef int64_t count = items.shape[0] // <int64_t> sizeof(Departure)
        cdef int64_t i
        cdef Departure one
        if items.shape[0] % <int64_t> sizeof(Departure) or self.size:
            raise ValueError(f"{items.shape[0]} bytes are no snapshot, or the queue is not empty")
        for i in range(count):
            memcpy(&one, &items[i * <int64_t> sizeof(Departure)], sizeof(Departure))
            self.insert(&one)
        self.scheduled = scheduled
        self.verify()

    def put(self, double t, int32_t slot):
        """Schedule the departure of a slot at second ``t``."""
        self.push(t, slot, 0)

    def take(self):
        """Remove the soonest departure; (second, slot)."""
        if self.size == 0:
            raise IndexError("nothing departs")
        soonest = self.items[0].t, self.items[0].slot
        self.pop()
        return soonest

    cdef int push(self, double t, int32_t slot, int32_t turn) except -1 nogil:
        """Schedule a departure; its sequence is the order of the calls."""
        cdef Departure new
        new.t, new.seq, new.slot, new.turn = t, self.scheduled, slot, turn
        self.scheduled += 1
        if self.size == 0:           # time may have begun again, too
            self.n_buckets = 0
        return self.insert(&new)

    cdef int insert(self, const Departure* new) except -1 nogil:
        """Insert a departure into the heap, its bucket or the array beyond."""
        cdef int64_t b
        self.size += 1
        if self.n_buckets == 0:
            self.to_heap(new)
            if self.n_items > self.heap_limit:
                self.rebuild()
            return 0
        b = self.bucket_of(new.t)
        if b <= self.at:
            return self.to_heap(new)
        return self.to_bucket(b, new) if b < self.n_buckets else self.to_beyond(new)

    cdef int32_t prefetch(self, const Slot* slots) noexcept nogil:
        """Prefetch the slots of the next pods; the slot of one whose node is needed soon, or -1."""
        cdef int32_t soon = self.soon
        cdef int64_t i
        # Hints: no result depends on them. What came up earlier is in the cache by now.
        if self.fresh:
            self.fresh = False
            for i in range(self.n_items):
                ahead(&slots[self.items[i].slot].seq)
                ahead(&slots[self.items[i].slot].gpus)
        if self.later >= 0:
            ahead(&slots[self.later].seq)
            ahead(&slots[self.later].gpus)
        self.soon = self.later = -1
        return soon

    cdef int64_t bucket_of(self, double t) noexcept nogil:
        """The bucket of a time, by a formula that never falls as time goes on; ``n_buckets`` beyond all of them."""
        cdef double b = (t - self.begin_s) * self.per_s
        if b <= 0.0:
            return 0
        return <int64_t> b if b < self.n_buckets else self.n_buckets

    cdef int to_heap(self, const Departure* new) except -1 nogil:
        """Insert a departure into the heap."""
        cdef int64_t i = self.n_items
        cdef int64_t up
        if self.n_items == self.room:
            self.room = grown(<void**> &self.items, self.room, sizeof(Departure))
        self.n_items += 1
        while i > 0:
            up = (i - 1) // FAN
            if not sooner(new, &self.items[up]):
                break
            self.items[i] = self.items[up]
            i = up
        self.items[i] = new[0]
        return 0

    cdef int to_bucket(self, int64_t b, const Departure* new) except -1 nogil:
        """Append a departure to bucket ``b``."""
        cdef Bucket* bucket = &self.buckets[b]
        cdef int32_t chunk
        if bucket.count % CHUNK == 0:
            chunk = self.free_chunk
            if chunk >= 0:
                self.free_chunk = self.chunks[chunk].after
            else:
                if self.n_chunks == self.chunk_room:
                    self.chunk_room = grown(<void**> &self.chunks, self.chunk_room, sizeof(Chunk))
                chunk = <int32_t> self.n_chunks
                self.n_chunks += 1
            self.chunks[chunk].after = bucket.first
            bucket.first = chunk
        self.chunks[bucket.first].items[bucket.count % CHUNK] = new[0]
        bucket.count += 1
        return 0

    cdef int to_beyond(self, const Departure* new) except -1 nogil:
        """Append a departure to those after all buckets."""
        if self.n_beyond == self.beyond_room:
            self.beyond_room = grown(<void**> &self.beyond, self.beyond_room, sizeof(Departure))
        self.beyond[self.n_beyond] = new[0]
        self.n_beyond += 1
        return 0

    cdef int rebuild(self) except -1 nogil:
        """Distribute all departures over new buckets; over none if they are few or have no spread in time."""
        cdef int64_t count = self.size
        cdef int64_t i
        cdef Departure one
        self.unsort()
        self.n_items = self.n_beyond = self.n_buckets = self.at = 0
        if count > FEW and self.find_width(count):
            self.alloc_buckets(count // BUCKET_SIZE)
        self.heap_limit = max(FEW, 0 if self.n_buckets > 0 else 2 * count)
        self.rebuild_size = GROWTH * count
        self.size -= count
        for i in range(count):
            one = self.beyond[i]
            self.insert(&one)
        return 0

    cdef bint find_width(self, int64_t count) noexcept nogil:
        """Choose the width of buckets from a sample of ``beyond``; False if there is none.

        The nearest departures get BUCKET_SIZE to a bucket, because most departures are of pods with short stays, while
        most pods present at a time have long ones.
        """
        cdef double[NEAREST] near
        cdef int64_t step = max(count // SAMPLED, 1)
        cdef int64_t n_sampled = 0
        cdef int64_t i = 0
        cdef int k
        cdef int n_near = 0
        cdef double t
        while i < count:
            t = self.beyond[i].t
            if n_near < NEAREST or t < near[n_near - 1]:
                n_near = min(n_near + 1, NEAREST)
                k = n_near - 1
                while k > 0 and near[k - 1] > t:
                    near[k] = near[k - 1]
                    k -= 1
                near[k] = t
            i += step
            n_sampled += 1
        self.begin_s = near[0]
        t = near[n_near - 1] - near[0]
        self.per_s = 0.0 if t <= 0.0 else <double> count * n_near / n_sampled / BUCKET_SIZE / t
        return 0.0 < self.per_s and isfinite(self.per_s)

    cdef int unsort(self) except -1 nogil:
        """Move all departures to ``beyond``."""
        cdef int64_t i
        cdef int64_t b
        for i in range(self.n_items):
            self.to_beyond(&self.items[i])
        self.n_items = 0
        for b in range(self.at, self.n_buckets):
            self.move_bucket(&self.buckets[b], True)
        return 0

    cdef int move_bucket(self, Bucket* bucket, bint far) except -1 nogil:
        """Move the departures of a bucket to ``beyond`` if ``far``, else to the heap."""
        cdef int32_t chunk
        cdef int some, i
        while bucket.count > 0:
            chunk, some = bucket.first, (bucket.count - 1) % CHUNK + 1
            for i in range(some):
                if far:
                    self.to_beyond(&self.chunks[chunk].items[i])
                else:
                    self.to_heap(&self.chunks[chunk].items[i])
            bucket.first, bucket.count = self.chunks[chunk].after, bucket.count - some
            self.chunks[chunk].after, self.free_chunk = self.free_chunk, chunk
        return 0

    cdef int alloc_buckets(self, int64_t count) except -1 nogil:
        """Allocate so many empty buckets."""
        cdef int64_t b
        cdef Bucket* fresh = <Bucket*> realloc(self.buckets, count * sizeof(Bucket))
        if fresh == NULL:
            with gil:
                raise MemoryError()
        self.buckets, self.n_buckets = fresh, count
        for b in range(count):
            fresh[b].first, fresh[b].count = -1, 0
        return 0

    cdef int refill(self) except -1 nogil:
        """Fill the empty heap with the next departures."""
        if self.size > self.rebuild_size:
            return self.rebuild()
        while self.n_items == 0:
            self.at += 1
            if self.at >= self.n_buckets:
                return self.rebuild()
            self.move_bucket(&self.buckets[self.at], False)
        self.fresh = True
        return 0

    cdef int pop(self) except -1 nogil:
        """Remove the soonest departure."""
        cdef int64_t i = 0
        cdef int64_t child, other, end
        cdef int row = 0
        cdef Departure last
        self.size -= 1
        self.n_items -= 1
        if self.n_items == 0:
            return self.refill() if self.size > 0 else 0
        last = self.items[self.n_items]
        while FAN * i + 1 < self.n_items:
            child = FAN * i + 1
            end = min(child + FAN, self.n_items)
            for other in range(child + 1, end):
                if sooner(&self.items[other], &self.items[child]):
                    child = other
            if not sooner(&self.items[child], &last):
                break
            self.items[i] = self.items[child]
            if row == 1:
                self.soon = self.items[i].slot
            elif row == 2:
                self.later = self.items[i].slot
            row += 1
            i = child
        self.items[i] = last
        return 0

    cpdef int verify(self) except -1:
        """Check the order of the heap and that every departure is in its bucket."""
        cdef int64_t i, b, count
        cdef int32_t chunk
        cdef int64_t listed = self.n_items + self.n_beyond
        assert self.n_items > 0 or self.size == 0, f"none of {self.size} departures is the next one"
        for i in range(1, self.n_items):
            assert not sooner(&self.items[i], &self.items[(i - 1) // FAN]), f"heap order broken at {i}"
        for i in range(self.n_items if self.n_buckets > 0 else 0):
            assert self.bucket_of(self.items[i].t) <= self.at, f"departure {i} of the heap belongs to a bucket"
        for i in range(self.n_beyond):
            assert self.bucket_of(self.beyond[i].t) == self.n_buckets > 0, f"departure {i} beyond all belongs before"
        for b in range(self.n_buckets):
            chunk, count = self.buckets[b].first, self.buckets[b].count
            listed += count
            for i in range(count - 1, -1, -1):
                assert self.at < b == self.bucket_of(self.chunks[chunk].items[i % CHUNK].t), f"not of bucket {b}"
                if i % CHUNK == 0:
                    chunk = self.chunks[chunk].after
        assert listed == self.size, f"{listed} departures are somewhere, {self.size} were counted"
        return 0
