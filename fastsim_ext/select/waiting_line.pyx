"""The waiting line as a search tree, for the rules that let pods pass one that fits nowhere.

A pod that fitted no node fits none until a node gets room: every check of a node becomes harder as pods start. So when
a pod leaves its node, only pods that fit this node are tried, in the order of the line. A tree over the line finds
them: each cell has the smallest requests below it. A cell may promise what no pod below it keeps; it never hides one.
Under an order by a key, in which pods join anywhere, the line is searched from pod to pod. A gang is tried every time:
its members may fit once those before them choose other nodes.

With a reservation for the first pod, those behind it that wait after a retry fit no node, or the reserved one alone,
where they would delay the first one. So that node counts as freed, and has room for two kinds of pods: those that are
estimated to end in time, and those that fit beside the first one.
"""

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from fastsim_ext.memory cimport memory_grown
from fastsim_ext.select.scan cimport NodeFilter, misfit
from fastsim_ext.state.node_table cimport NodeTable
from fastsim_ext.state.pod_table cimport WorkTable
from fastsim_ext.types cimport FULL, Node, Pod

cdef enum:
    FIRST_ROOM = 64      # positions of a new tree
    MOST = 2147483647    # of an amount of Least, which stands for all above it, too

cdef Least EMPTY = Least(MOST, MOST, MOST, 0, INFINITY)
cdef uint64_t ALL = ~(<uint64_t> 0)      # models


cdef int need_of(const Pod* pod) noexcept nogil:
    """The need of devices of a request; shares of several devices are only looked at by CPU and memory."""
    if pod.num_gpu == 1 and pod.milli < FULL:
        return 1
    return 2 if pod.num_gpu > 0 and pod.milli == FULL else 0


cdef uint32_t halves(uint64_t models) noexcept nogil:
    """A set of models as half as many bits; two sets that have one in common have a bit in common."""
    return <uint32_t> (models | models >> 32)


cdef float no_more_than(double lasts) noexcept nogil:
    """A time of single precision, which is never rounded up: at most 3e38 seconds."""
    return <float> min(lasts * (1.0 - 1e-6), 3e38) if lasts > 1e-30 else 0.0


cdef int64_t amount_of(const Pod* pod, int need) noexcept nogil:
    """What a request takes of devices: milli-GPU of a share, or whole devices."""
    return pod.milli if need == 1 else pod.num_gpu if need == 2 else 0


cdef void tree_write(LineTree* tree, int32_t position, const Pod* pod, bint together, double lasts) noexcept nogil:
    """Write the request at a position, NULL for none, and the cells above that it changes.

    A gang, whose pods start ``together``, requests less than nothing.
    """
    cdef Least* leaf = &tree.least[NEEDS * (tree.room + position)]
    cdef int32_t cell = (tree.room + position) // 2
    cdef int f
    for f in range(NEEDS):
        leaf[f] = EMPTY
    if together:
        leaf[0].cpu, leaf[0].mem, leaf[0].gpu = -1, -1, 0
    elif pod != NULL:
        f = need_of(pod)
        leaf[f].cpu, leaf[f].mem = <int32_t> min(pod.cpu, MOST), <int32_t> min(pod.mem, MOST)
        leaf[f].gpu, leaf[f].lasts = amount_of(pod, f), no_more_than(lasts)
        leaf[f].models = halves(pod.models if f > 0 and pod.models != 0 else ALL)
    while cell > 0 and tree_renewed(tree, cell):
        cell //= 2


cdef bint tree_renewed(LineTree* tree, int32_t cell) noexcept nogil:
    """Take the smaller requests of both children into a cell; whether that changed it."""
    cdef Least* own = &tree.least[NEEDS * cell]
    cdef const Least* child = &tree.least[2 * NEEDS * cell]
    cdef Least new
    cdef bint changed = False
    cdef int f
    for f in range(NEEDS):
        new.cpu = min(child[f].cpu, child[NEEDS + f].cpu)
        new.mem = min(child[f].mem, child[NEEDS + f].mem)
        new.gpu = min(child[f].gpu, child[NEEDS + f].gpu)
        new.models = child[f].models | child[NEEDS + f].models
        new.lasts = min(child[f].lasts, child[NEEDS + f].lasts)
        changed |= (new.cpu != own[f].cpu or new.mem != own[f].mem or new.gpu != own[f].gpu
                    or new.models != own[f].models or new.lasts != own[f].lasts)
        own[f] = new
    return changed


@cython.final
cdef class WaitingLine:
    """The pods of ``work`` that wait; ``searchable`` unless a failed attempt counts or is listened to."""

    def __init__(self, NodeTable nodes, WorkTable work, bint searchable, int order):
        self.nodes, self.work, self.searchable, self.order = nodes, work, searchable, order
        self.at_slot = self.reserved_node = -1

    def __dealloc__(self):
        cdef int t
        for t in range(self.n_trees):
            free(self.trees[t].slot)
            free(self.trees[t].least)
        free(self.position)

    cdef void close(self) noexcept nogil:
        """From now on every pod is tried."""
        self.searchable = self.tried = False

    cdef bint is_gang(self, int32_t slot) noexcept nogil:
        """Whether an entry of the line stands for a gang."""
        return self.membership is not None and self.membership.members[slot].gang >= 0

    # ------------------------------------------------------------------ the line

    cdef int tree_of(self, int32_t priority) except -2 nogil:
        """The tree of a priority, a new one if there is none; -1 if there are too many."""
        cdef int t = 0, k
        while t < self.n_trees and self.trees[t].priority > priority:
            t += 1
        if t < self.n_trees and self.trees[t].priority == priority:
            return t
        if self.n_trees == MOST_TREES:
            return -1
        for k in range(self.n_trees, t, -1):
            self.trees[k] = self.trees[k - 1]
        self.n_trees += 1
        self.trees[t].priority, self.trees[t].room, self.trees[t].used, self.trees[t].alive = priority, 0, 0, 0
        self.trees[t].slot, self.trees[t].least = NULL, NULL
        return t

    cdef int join(self, int32_t slot) except -1 nogil:
        """A pod joins the line behind all others of its priority."""
        cdef int t
        cdef LineTree* tree
        if not self.searchable or self.order == BY_KEY:
            return 0
        if slot >= self.room:
            self.position = <int32_t*> memory_grown(self.position, 2 * slot + 64, sizeof(int32_t))
            for t in range(self.room, 2 * slot + 64):
                self.position[t] = -1
            self.room = 2 * slot + 64
        t = self.tree_of(self.work.slots[slot].priority if self.order == BY_PRIORITY else 0)
        if t < 0:
            self.close()
            return 0
        tree = &self.trees[t]
        if tree.used == tree.room:
            self.make_room(tree)
        tree.slot[tree.used], self.position[slot] = slot, tree.used
        self.write(tree, tree.used, slot)
        tree.used, tree.alive = tree.used + 1, tree.alive + 1
        return 0

    cdef int make_room(self, LineTree* tree) except -1 nogil:
        """Close the gaps of pods that have left; twice as many positions if most are taken."""
        cdef int32_t room = tree.room, position, at = 0
        cdef int f
        if 2 * tree.alive >= room:
            room = max(2 * room, FIRST_ROOM)
            tree.slot = <int32_t*> memory_grown(tree.slot, room, sizeof(int32_t))
            tree.least = <Least*> memory_grown(tree.least, 2 * <int64_t> NEEDS * room, sizeof(Least))
            tree.room = room
        for position in range(tree.used):
            if tree.slot[position] >= 0:
                tree.slot[at] = tree.slot[position]
                self.position[tree.slot[at]] = at
                at += 1
        tree.used = at
        for f in range(2 * NEEDS * room):
            tree.least[f] = EMPTY
        for position in range(at):
            self.write(tree, position, tree.slot[position])
        return 0

    cdef void write(self, LineTree* tree, int32_t position, int32_t slot) noexcept nogil:
        """Write the request of a pod at a position of a tree."""
        tree_write(tree, position, &self.work.classes[self.work.slots[slot].cls], self.is_gang(slot), self.lasts(slot))

    cdef double lasts(self, int32_t slot) noexcept nogil:
        """Estimated seconds of a pod, where they decide."""
        return self.membership.estimated_s(slot) if self.reserves else 0.0

    cdef void leave(self, int32_t slot) noexcept nogil:
        """A pod leaves the line."""
        cdef int t = 0
        cdef int32_t position = self.position[slot] if slot < self.room else -1
        if not self.searchable or position < 0:
            return
        while self.order == BY_PRIORITY and self.trees[t].priority != self.work.slots[slot].priority:
            t += 1
        self.trees[t].slot[position] = self.position[slot] = -1
        self.trees[t].alive -= 1
        tree_write(&self.trees[t], position, NULL, False, 0.0)

    cdef int rebuild(self) except -1 nogil:
        """Build the trees again from the line of ``work``; every pod is tried then.

        A line that was kept under another rule may not be in order of priority: it is never searched.
        """
        cdef int32_t slot, after
        cdef int t
        for t in range(self.n_trees):
            while self.trees[t].used > 0:
                self.trees[t].used -= 1
                slot = self.trees[t].slot[self.trees[t].used]
                if slot >= 0:
                    self.position[slot] = -1
                tree_write(&self.trees[t], self.trees[t].used, NULL, False, 0.0)
            self.trees[t].alive = 0
        self.free_all()
        slot = self.work.head
        while slot >= 0:
            self.join(slot)
            after = self.work.slots[slot].after
            if self.order == BY_PRIORITY and after >= 0 and (
                    self.work.slots[after].priority > self.work.slots[slot].priority):
                self.close()
            slot = after
        return 0

    # ------------------------------------------------------------------ what was freed

    cdef void free_node(self, int32_t node) noexcept nogil:
        """A pod has left this node; of no account where every pod is tried next."""
        cdef int k
        if not self.tried:
            return
        for k in range(self.n_freed):
            if self.freed[k] == node:
                return
        if self.n_freed == MOST_FREED:
            self.tried = False
            return
        self.freed[self.n_freed] = node
        self.n_freed += 1

    cdef void free_all(self) noexcept nogil:
        """Any node may have room that it did not have, or a pod has joined that was not tried."""
        self.tried = False

    cdef bint known(self) noexcept nogil:
        """Whether the pods that fit nowhere can be passed without being tried."""
        return self.searchable and self.tried

    cdef void settle(self, bint lasting) noexcept nogil:
        """Every pod that may fit was tried; ``lasting``: one that failed fails until a node gets room."""
        self.tried, self.n_freed = self.searchable and lasting, 0

    # ------------------------------------------------------------------ search

    cdef int32_t first(self) noexcept nogil:
        """The first pod of the line that fits one of the freed nodes now, or -1."""
        self.at_tree, self.at_position, self.at_slot = 0, 0, self.work.head
        self.searches += 1
        return self.following()

    cdef bint front_fits(self) noexcept nogil:
        """Whether the first pod of the line fits one of the freed nodes now."""
        self.reserved_node = -1
        self.measure()
        return self.work.head >= 0 and self.fits(self.work.head)

    cdef void reserve(self, int32_t node, double start, double now) noexcept nogil:
        """Go on behind the first pod of the line, with pods that leave its reservation as it is.

        That is so on the reserved node if they end by its start or take no more than ``beside``.
        """
        self.reserved_node, self.reserved_s, self.now = node, start, now
        self.at_tree, self.at_position = 0, self.position[self.work.head] + 1
        self.searches += 1

    cdef int32_t following(self) noexcept nogil:
        """The next pod that fits one of the freed nodes now, or -1."""
        cdef int32_t position
        cdef LineTree* tree
        self.measure()
        if self.order == BY_KEY:
            return self.following_by_key()
        while self.at_tree < self.n_trees:
            tree = &self.trees[self.at_tree]
            position = self.first_fitting(tree) if tree.alive else -1
            if position >= 0:
                self.at_position = position + 1
                return tree.slot[position]
            self.at_tree, self.at_position = self.at_tree + 1, 0
        return -1

    cdef void measure(self) noexcept nogil:
        """Measure the room of the freed nodes that can take a pod."""
        cdef int32_t n
        cdef int k
        cdef const Node* node
        cdef FreeRoom* room
        self.n_rooms = 0
        for k in range(self.n_freed):
            n = self.freed[k]
            node = &self.nodes.records[n]
            if self.nodes.present[n] and self.nodes.pods[n] < self.nodes.max_pods[n]:
                room = &self.rooms[self.n_rooms]
                room.node, room.cpu, room.mem, room.until = n, node.cpu_left, node.mem_left, INFINITY
                room.gpu[0], room.gpu[1], room.gpu[2] = 0, node.most, node.idle
                room.models = halves(ALL if node.model < 0 else (<uint64_t> 1) << node.model)
                self.n_rooms += 1
                if n == self.reserved_node:
                    room.until, self.beside.models = self.reserved_s, room.models
                    self.rooms[self.n_rooms] = self.beside
                    self.n_rooms += 1

    cdef int32_t following_by_key(self) noexcept nogil:
        """The next pod of the line itself that fits."""
        cdef int32_t slot = self.at_slot
        while slot >= 0:
            self.at_slot = self.work.slots[slot].after
            if self.fits(slot):
                return slot
            slot = self.at_slot
        return -1

    cdef int32_t first_fitting(self, const LineTree* tree) noexcept nogil:
        """The first position from ``at_position`` on whose pod fits, or -1."""
        cdef int32_t cell = tree.room + self.at_position
        if self.at_position >= tree.used or not self.may_fit(&tree.least[NEEDS]):
            return -1
        while cell % 2 == 0:             # the largest cell that begins with this position
            cell //= 2
        while True:
            if self.may_fit(&tree.least[NEEDS * cell]):
                if cell < tree.room:
                    cell *= 2
                    continue
                if self.fits(tree.slot[cell - tree.room]):
                    return cell - tree.room
            while cell % 2 == 1:         # on to the next one
                cell //= 2
            if cell == 0:
                return -1
            cell += 1

    cdef bint may_fit(self, const Least* least) noexcept nogil:
        """Whether a pod with the smallest requests of one need of devices would fit a freed node, or is in a gang."""
        cdef int k, f
        if least[0].cpu < 0:
            return True
        for k in range(self.n_rooms):
            for f in range(NEEDS):
                if (least[f].cpu <= self.rooms[k].cpu and least[f].mem <= self.rooms[k].mem
                        and least[f].gpu <= self.rooms[k].gpu[f] and least[f].models & self.rooms[k].models
                        and self.now + least[f].lasts <= self.rooms[k].until):
                    return True
        return False

    cdef bint fits(self, int32_t slot) noexcept nogil:
        """Whether the pod fits a freed node, as far as its class says; gangs are tried."""
        cdef const Pod* pod = &self.work.classes[self.work.slots[slot].cls]
        cdef int need = need_of(pod)
        cdef int64_t amount = amount_of(pod, need)
        cdef double end = self.now + self.lasts(slot)
        cdef Node node
        cdef int32_t n
        cdef int k
        if self.is_gang(slot):
            return True
        for k in range(self.n_rooms):
            if (pod.cpu <= self.rooms[k].cpu and pod.mem <= self.rooms[k].mem and amount <= self.rooms[k].gpu[need]
                    and end <= self.rooms[k].until):
                n = self.rooms[k].node
                node = self.nodes.at(n)
                if misfit(&node, pod, self.nodes.pods[n], self.nodes.max_pods[n]) == 0:
                    return True
        return False

    cpdef int verify(self) except -1:
        """The trees hold the waiting pods in the order of the line, and no cell promises too little."""
        cdef int32_t slot = self.work.head
        cdef int t, f
        cdef int32_t position, cell
        cdef const Least* own
        cdef const Least* child
        for t in range(self.n_trees if self.searchable else 0):
            for position in range(self.trees[t].used):
                if self.trees[t].slot[position] >= 0:
                    assert self.trees[t].slot[position] == slot, f"slot {slot} is not at its place in the line"
                    own = &self.trees[t].least[NEEDS * (self.trees[t].room + position)]
                    f = need_of(&self.work.classes[self.work.slots[slot].cls])
                    assert self.is_gang(slot) or own[f].lasts == no_more_than(self.lasts(slot)), (
                        f"slot {slot} lasts otherwise")
                    slot = self.work.slots[slot].after
            for cell in range(2, 2 * self.trees[t].room):
                own, child = &self.trees[t].least[NEEDS * (cell // 2)], &self.trees[t].least[NEEDS * cell]
                for f in range(NEEDS):
                    assert (own[f].cpu <= child[f].cpu and own[f].mem <= child[f].mem and own[f].gpu <= child[f].gpu
                            and own[f].lasts <= child[f].lasts and child[f].models & ~own[f].models == 0
                            ), f"cell {cell} hides a pod"
        assert slot < 0 or not self.searchable or self.order == BY_KEY, f"slot {slot} waits and is in no tree"
        return 0

    cdef int verify_tried(self, NodeFilter conditions) except -1:
        """No pod fits a node that was not freed since all were tried.

        Without ``conditions`` the classes say all of them; a gang may fit as its members choose.
        """
        cdef int32_t slot = self.work.head
        cdef Node node
        cdef int n, reason
        freed = {self.freed[n] for n in range(self.n_freed)}
        while slot >= 0 and self.known():
            for n in range(self.nodes.count):
                if conditions is not None:
                    reason = conditions.refusal(n, self.work.slots[slot].cls)
                else:
                    node = self.nodes.at(n)
                    reason = misfit(&node, &self.work.classes[self.work.slots[slot].cls], self.nodes.pods[n],
                                    self.nodes.max_pods[n])
                assert reason or n in freed or not self.nodes.present[n] or self.is_gang(slot), (
                    f"slot {slot} waits although it fits node {n}")
            slot = self.work.slots[slot].after
        return 0
