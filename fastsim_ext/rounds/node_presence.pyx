"""The nodes that are there in a round, and those that go away before it ends.

A node that comes or goes during a round is there, or not, from the next round on. A task on a node that goes away
before the task is finished has worked in vain.
"""

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t


@cython.final
cdef class NodePresence:
    """``node_of_gpu`` is the node of each GPU, ``away`` the number of reasons for which each node is absent.

    A node is there when no reason is left. Arrays are kept, not copied; ``leaves_s`` has room for each node.
    """

    def __init__(self, node_of_gpu, away, leaves_s):
        self.node_of_gpu, self.away, self.leaves_s, self.seen_s = node_of_gpu, away, leaves_s, -INFINITY

    @property
    def left(self):
        """Changes that were fed and have not happened."""
        return self.t.shape[0] - self.at

    def feed(self, t, node, comes, bint closed):
        """The changes that have not happened, in order of time; ``closed``: there are no others."""
        self.t, self.node, self.comes, self.at, self.closed = t, node, comes, 0, closed

    def begin_round(self, double now_s, double until_s):
        """See the changes until the round begins, and those before ``until_s``; whether further ones are to be fed."""
        if self.wants(until_s):
            return True
        self.advance(now_s, until_s)
        return False

    cdef bint wants(self, double until_s) noexcept nogil:
        """Whether changes before ``until_s`` may not have been fed."""
        cdef int64_t count = self.t.shape[0]
        return not self.closed and (count == self.at or self.t[count - 1] < until_s)

    cdef bint advance(self, double now_s, double until_s) noexcept nogil:
        """A round lasts from ``now_s`` to ``until_s`` at most; whether a node has come or gone since the last one."""
        cdef bint changed = False
        cdef int64_t k
        cdef int32_t node
        self.leaves_s[:] = INFINITY
        while self.at < self.t.shape[0] and self.t[self.at] <= now_s:
            node = self.node[self.at]
            self.away[node] += -1 if self.comes[self.at] else 1
            changed |= self.away[node] == (0 if self.comes[self.at] else 1)
            self.at += 1
        k = self.at
        while k < self.t.shape[0] and self.t[k] < until_s:
            if not self.comes[k]:
                self.leaves_s[self.node[k]] = min(self.leaves_s[self.node[k]], self.t[k])
            k += 1
        self.seen_s = now_s
        return changed

    cdef double next_s(self) noexcept nogil:
        """When the next change happens, seconds; infinite without one."""
        return self.t[self.at] if self.at < self.t.shape[0] else INFINITY

    cdef bint is_absent(self, int32_t gpu) noexcept nogil:
        """Whether the node of a GPU is absent in this round."""
        return self.away[self.node_of_gpu[gpu]] > 0

    cdef bint goes(self, const int32_t* gpus, int32_t count, double finish_s) noexcept nogil:
        """Whether a node of these GPUs goes away before ``finish_s``."""
        cdef int32_t i
        for i in range(count):
            if self.leaves_s[self.node_of_gpu[gpus[i]]] < finish_s:
                return True
        return False
