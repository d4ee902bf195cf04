"""Node columns and their running totals; the only writer of node state.

A placement changes one node, so every total of the cluster is a running sum, updated by the
difference of that node. All sums are integers and therefore never drift.
"""

from libc.math cimport NAN, isnan
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset
from fastsim_ext.memory cimport ahead, ahead_line, ahead_pages
from fastsim_ext.scores.device cimport SPARE, device_free_milli, device_idle_count, device_most
from fastsim_ext.scores.frag cimport frag_amount, frag_classes
from fastsim_ext.scores.frag_grouped cimport (
    STRIPS, View, grouped_restore, grouped_classes, grouped_pack, grouped_unpack, grouped_view,
)
from fastsim_ext.scores.frag_sums cimport sums_drop, sums_make
from fastsim_ext.scores.power cimport power_cpu, power_gpu, power_mig
from fastsim_ext.state.pod_outcomes cimport (
    NO_CPU, NO_GPU, NO_GPU_MODEL, NO_MEMORY, NO_POD_SLOT, checks_passed, lasting_reason,
)
from fastsim_ext.types cimport FRAG_CLASSES, FULL, Node, Pod

cdef enum:
    NEAR = 2048          # nodes of a cluster that a cache holds
    LINE = 64            # bytes of a cache line


cdef class TypicalTable:
    """The target workload as columns; see types.pxd for their units."""

    def __init__(self, columns):
        self.cpu, self.count, self.freq = columns["cpu"], columns["count"], columns["freq"]
        self.kind, self.kinds = columns["kind"], columns["kinds"]
        self.level_milli, self.fit, self.small = columns["level_milli"], columns["fit"], columns["small"]
        self.unusable = columns["unusable"]
        self.group(columns["groups"])
        cdef int n = self.cpu.shape[0]
        self.typical.n, self.typical.n_gpu, self.typical.n_kinds = n, columns["n_gpu"], self.kinds.shape[0]
        self.typical.n_levels = self.level_milli.shape[0]
        if n == 0:
            return
        self.typical.cpu, self.typical.count, self.typical.freq = &self.cpu[0], &self.count[0], &self.freq[0]
        self.typical.kind, self.typical.kinds = &self.kind[0], &self.kinds[0]
        self.typical.unusable__kq = &self.unusable[0, 0]
        if self.typical.n_levels > 0:
            self.typical.level_milli = &self.level_milli[0]
            self.typical.fit, self.typical.small = &self.fit[0], &self.small[0]

    def group(self, columns):
        """Use the columns of the same workload by device request."""
        cdef const int64_t[::1] cpu = columns["cpu"]
        cdef const int64_t[::1] cpu_only = columns["cpu_only"]
        cdef const int32_t[::1] strip = columns["strip"]
        cdef const int32_t[:, ::1] fits__vg = columns["fits"]
        cdef const int32_t[:, ::1] small__vg = columns["small"]
        cdef const int32_t[::1] num = columns["num"]
        cdef const int32_t[:, ::1] open__mg = columns["open"]
        cdef const double[:, ::1] share__rg = columns["share"]
        cdef const double[:, ::1] count__rg = columns["count"]
        cdef const int64_t[:, ::1] opens__mr = columns["opens"]
        cdef int32_t[:, ::1] scratch = columns["scratch"]
        self.columns = columns
        self.groups.n, self.groups.n_ranks = num.shape[0], cpu.shape[0] + 1
        if strip.shape[0] != STRIPS:
            raise ValueError(f"found {strip.shape[0]} strips of CPU, expected {STRIPS}")
        self.groups.cpu = &cpu[0] if cpu.shape[0] > 0 else NULL
        self.groups.strip = &strip[0]
        self.groups.fits__vg, self.groups.small__vg = &fits__vg[0, 0], &small__vg[0, 0]
        self.groups.num, self.groups.cpu_only = &num[0], &cpu_only[0]
        self.groups.open__mg, self.groups.scratch = &open__mg[0, 0], &scratch[0, 0]
        self.groups.share__rg, self.groups.count__rg = &share__rg[0, 0], &count__rg[0, 0]
        self.groups.all, self.groups.with_gpu = columns["all"], columns["with_gpu"]
        self.groups.opens__mr = &opens__mr[0, 0]
        sums_make(&self.sums, 2 * self.groups.n)
        self.groups.sums = &self.sums

    def __dealloc__(self):
        sums_drop(&self.sums)


cdef class NodeTable:
    """All nodes of a cluster; a node's position is its identity."""

    def __init__(self, columns, TypicalTable target):
        self.cpu_cap, self.mem_cap = columns["cpu_cap"], columns["mem_cap"]
        self.gpu_idle_mw, self.gpu_peak_mw = columns["gpu_idle_mw"], columns["gpu_peak_mw"]
        self.cpu_idle_mw, self.cpu_peak_mw = columns["cpu_idle_mw"], columns["cpu_peak_mw"]
        self.num_gpu, self.model = columns["num_gpu"], columns["model"]
        self.max_pods, self.cores = columns["max_pods"], columns["cores"]
        self.mig_gpus, self.mig_used = columns["mig_gpus"], columns["mig_used"]
        self.cpu_left, self.mem_left, self.pods = columns["cpu_left"], columns["mem_left"], columns["pods"]
        self.gpu_left__ng, self.tags__nt = columns["gpu_left"], columns["tags"]
        self.present, self.frag, self.frag__nk = columns["present"], columns["frag"], columns["frag_classes"]
        self.cpu_mw, self.gpu_mw = columns["cpu_mw"], columns["gpu_mw"]
        self.changed, self.listed = columns["changed"], columns["listed"]
        self.before, self.free, self.spare = columns["before"], columns["free"], columns["spare"]
        self.count = self.cpu_cap.shape[0]
        for n in range(self.count):
            self.partitioned = self.partitioned or self.mig_gpus[n] > 0
        self.width, self.n_tags = self.gpu_left__ng.shape[1], self.tags__nt.shape[1]
        for name in ("gpu_left", "tags", "frag_classes"):    # kernels take a pointer to the first number of a node
            if columns[name].strides[1] != columns[name].itemsize:
                raise ValueError(f"{name}: found numbers {columns[name].strides[1]} bytes apart, expected a row")
        memset(&self.total, 0, sizeof(Totals))
        self.target = target
        self.memory[0] = calloc(self.count * sizeof(Node) + LINE, 1)
        if self.memory[0] == NULL:
            raise MemoryError()
        self.records = <Node*> ahead_line(self.memory[0])
        ahead_pages(self.records, self.count * sizeof(Node))
        for n in range(self.count):
            self.records[n] = self.from_columns(n)
            self.n_full += self.pods[n] >= self.max_pods[n]
        self.count_present()

    def __dealloc__(self):
        cdef int k
        for k in range(3):
            free(self.memory[k])

    def count_present(self):
        """Add all present nodes to the totals."""
        cdef int n
        cdef size_t view_bytes = 2 * self.target.groups.n * sizeof(uint16_t)
        free(self.memory[1])
        free(self.memory[2])
        self.memory[1] = calloc(self.count * view_bytes + LINE, 1)
        self.memory[2] = calloc(3 * self.target.groups.n, sizeof(int32_t))
        if self.memory[1] == NULL or self.memory[2] == NULL:
            raise MemoryError()
        self.packed_views, self.viewed = <uint16_t*> ahead_line(self.memory[1]), -1
        ahead_pages(self.packed_views, self.count * view_bytes)
        for n in range(self.count):
            if self.present[n]:
                self.refresh(n)
                self.count_node(n, 1)

    def retarget(self, TypicalTable target):
        """Measure fragmentation for another target workload from now on."""
        cdef int n
        for n in range(self.count):
            if self.present[n]:
                self.count_node(n, -1)
        self.target = target
        self.count_present()

    def totals(self):
        """The running sums as a dict; units as in the pxd."""
        return self.total

    def load(self, int n, int64_t cpu_left, int64_t mem_left, gpu_left, tags):
        """Set the state of node ``n`` (GPU milli by device, pods by tag)."""
        cdef int g
        self.check_node(n)
        if len(gpu_left) != self.num_gpu[n]:
            raise ValueError(f"node {n}: found {len(gpu_left)} devices, expected {self.num_gpu[n]}")
        for left in gpu_left:
            if not 0 <= left <= FULL:
                raise ValueError(f"node {n}: found {left} milli-GPU left on a device, expected 0 to {FULL}")
        self.count_node(n, -1)
        self.cpu_left[n], self.mem_left[n] = cpu_left, mem_left
        self.records[n].cpu_left, self.records[n].mem_left = cpu_left, mem_left
        for g in range(self.num_gpu[n]):
            self.gpu_left__ng[n, g] = gpu_left[g]
        for g in range(self.n_tags):
            self.tags__nt[n, g] = tags.get(g, 0)
        self.refresh(n)
        self.count_node(n, 1)

    def figures(self, int n):
        """(fragmentation by class in count x milli-GPU, F in milli-GPU, CPU mW, GPU mW) of one node."""
        self.check_node(n)
        frag = self.exactly(n).frag
        return [self.frag__nk[n, k] for k in range(FRAG_CLASSES)], frag, self.cpu_mw[n], self.gpu_mw[n]

    def frag_shares(self, int n):
        """Fragmentation by class of one node in float64 milli-GPU, summed as scores are."""
        cdef double[FRAG_CLASSES] out
        cdef Node node
        self.check_node(n)
        node = self.at(n)
        frag_classes(node.cpu_left, node.gpu_left, &node, &self.target.typical, self.target.typical.freq, &out[0])
        return [out[k] for k in range(FRAG_CLASSES)]

    cdef int check_node(self, int n) except -1:
        """Raise IndexError unless a node is present at position ``n``; kernels do not check."""
        if not 0 <= n < self.count or not self.present[n]:
            raise IndexError(f"no node is present at position {n}")
        return 0

    cdef Node at(self, int n) noexcept nogil:
        """The state of node ``n`` as kernels see it."""
        return self.records[n]

    cdef Node from_columns(self, int n) noexcept nogil:
        """The same, gathered from the columns."""
        cdef Node node
        node.cpu_cap, node.cpu_left = self.cpu_cap[n], self.cpu_left[n]
        node.mem_cap, node.mem_left = self.mem_cap[n], self.mem_left[n]
        node.gpu_left = &self.gpu_left__ng[n, 0]
        node.num_gpu, node.width, node.model = self.num_gpu[n], self.width, self.model[n]
        node.gpu_idle_mw, node.gpu_peak_mw = self.gpu_idle_mw[n], self.gpu_peak_mw[n]
        node.cpu_idle_mw, node.cpu_peak_mw = self.cpu_idle_mw[n], self.cpu_peak_mw[n]
        node.cores, node.slots, node.kind = self.cores[n], self.max_pods[n] - self.pods[n], 0
        node.tags, node.n_tags = &self.tags__nt[n, 0], self.n_tags
        node.frag = self.frag[n]
        return node

    cdef void prefetch(self, int n) noexcept nogil:
        """Prefetch node ``n``; in large clusters most of it is not in the cache."""
        cdef int i
        if self.count < NEAR:
            return
        for i in range(0, <int> sizeof(Node), 64):
            ahead(<char*> &self.records[n] + i)
        for i in range(0, <int> (<char*> &self.listed[n] - <char*> &self.frag__nk[n, 0]) + 1, 64):
            # and the columns between them, see fastsim.engine.online.kernel_columns.TOGETHER
            ahead(<char*> &self.frag__nk[n, 0] + i)
        ahead(&self.cpu_left[n])
        ahead(&self.mem_left[n])
        ahead(&self.pods[n])
        ahead(&self.spare[n])
        for i in range(0, 2 * self.target.groups.n, 32):
            ahead(self.packed_views + <int64_t> n * 2 * self.target.groups.n + i)

    cdef Node exactly(self, int n) noexcept nogil:
        """As ``at``, with the node's fragmentation summed in the given order."""
        cdef Node* node = &self.records[n]
        if isnan(node.frag):
            self.frag[n] = node.frag = frag_amount(node.cpu_left, node.gpu_left, node, &self.target.typical)
        return node[0]

    cdef void load_view(self, const Node* node, int n, View* view) noexcept nogil:
        """The view of node ``n`` that was stored when it last changed."""
        grouped_restore(node, &self.target.groups, <int32_t*> self.memory[2], self.free[n], self.before[n], view)
        if self.viewed != n:
            grouped_unpack(view, self.packed_views + <int64_t> n * 2 * self.target.groups.n)
            self.viewed = n

    cdef void list_change(self, int n) noexcept nogil:
        """List node ``n`` as changed, if ``watched``."""
        if self.watched and not self.listed[n]:
            self.listed[n] = 1
            self.changed[self.n_changed] = n
            self.n_changed += 1

    cdef int lasting_obstacle(self, const Pod* pod) noexcept nogil:
        """Why no node of the table, when empty and present, could host the pod, as a Reason; 0 if one could."""
        cdef int n, lack, furthest = 0
        cdef bint gpus = False
        for n in range(self.count):
            gpus = gpus or self.num_gpu[n] > 0
            if pod.num_gpu > 0 and pod.models != 0 and (
                    self.model[n] < 0 or not (pod.models >> self.model[n]) & 1):
                lack = NO_GPU_MODEL
            elif self.num_gpu[n] < pod.num_gpu:
                lack = NO_GPU
            elif self.cpu_cap[n] < pod.cpu:
                lack = NO_CPU
            elif self.mem_cap[n] < pod.mem:
                lack = NO_MEMORY
            elif self.max_pods[n] <= 0:
                lack = NO_POD_SLOT
            else:
                return 0
            if checks_passed(lack) > checks_passed(furthest):
                furthest = lack
        return lasting_reason(furthest, gpus)

    cdef void allocate(self, int n, const Pod* pod, uint64_t gpus) noexcept nogil:
        """Allocate CPU, memory and the devices ``gpus`` of node ``n`` to ``pod``."""
        self.shift(n, pod, gpus, -1)

    cdef void release(self, int n, const Pod* pod, uint64_t gpus) noexcept nogil:
        """Release what ``pod`` holds on node ``n``."""
        self.shift(n, pod, gpus, 1)

    cdef void shift(self, int n, const Pod* pod, uint64_t gpus, int sign) noexcept nogil:
        """Change what is left on node ``n`` by what ``pod`` requests: -1 takes it, 1 gives it back."""
        cdef int g
        self.count_node(n, -1)
        self.cpu_left[n] += sign * pod.cpu
        self.mem_left[n] += sign * pod.mem
        self.records[n].cpu_left, self.records[n].mem_left = self.cpu_left[n], self.mem_left[n]
        self.n_full -= self.records[n].slots <= 0
        self.pods[n] -= sign
        self.records[n].slots += sign
        if pod.mig > 0:
            self.mig_used[n] -= sign * pod.mig
        self.n_full += self.records[n].slots <= 0
        if pod.num_gpu > 0:
            self.tags__nt[n, 0 if pod.num_gpu == 1 and pod.milli < FULL else pod.num_gpu] -= sign
            for g in range(self.records[n].num_gpu):
                if (gpus >> g) & 1:
                    self.gpu_left__ng[n, g] += sign * pod.milli
        self.refresh(n)
        self.count_node(n, 1)

    cdef void add_node(self, int n) noexcept nogil:
        """Add an empty node to the cluster."""
        if not self.present[n]:
            self.present[n] = 1
            self.refresh(n)
            self.count_node(n, 1)

    cdef void remove_node(self, int n) noexcept nogil:
        """Remove an empty node from the cluster."""
        if self.present[n]:
            self.count_node(n, -1)
            self.present[n] = 0
            self.list_change(n)

    cdef void refresh(self, int n) noexcept nogil:
        """Recompute everything derived from the state of node ``n``."""
        cdef Node* node = &self.records[n]
        cdef View view
        node.idle, node.most = device_idle_count(node), device_most(node)
        self.spare[n] = SPARE * node.idle + node.most
        self.cpu_mw[n] = power_cpu(node, node.cpu_left)
        self.gpu_mw[n] = power_gpu(node)
        if self.partitioned:
            self.gpu_mw[n] += power_mig(node, self.mig_gpus[n], self.mig_used[n])
        self.frag[n] = self.records[n].frag = NAN
        grouped_view(node, &self.target.groups, <int32_t*> self.memory[2], &view)
        grouped_pack(&view, self.packed_views + <int64_t> n * 2 * self.target.groups.n)
        self.viewed = n
        self.free[n], self.before[n] = view.free, view.before
        grouped_classes(&view, &self.frag__nk[n, 0])
        self.list_change(n)

    cdef void count_node(self, int n, int64_t sign) noexcept nogil:
        """Add (``sign`` 1) or remove (-1) node ``n``, as it was last refreshed, from the totals."""
        cdef const Node* node = &self.records[n]
        cdef Totals* total = &self.total
        cdef const int64_t* frag = &self.frag__nk[n, 0]
        cdef int64_t used = node.idle < node.num_gpu or node.cpu_left < node.cpu_cap
        cdef int64_t gpu_cap = <int64_t> node.num_gpu * FULL
        cdef int k
        if self.partitioned:
            used = used or self.mig_used[n] > 0
            self.count_partitions(n, sign, used)
        total.nodes_used += sign * used
        total.gpus_of_used_nodes += sign * used * node.num_gpu
        total.gpus_used += sign * (node.num_gpu - node.idle)
        total.cpu_alloc += sign * (node.cpu_cap - node.cpu_left)
        total.mem_alloc += sign * (node.mem_cap - node.mem_left)
        total.gpu_alloc += sign * (gpu_cap - self.free[n])
        total.cpu_cap += sign * node.cpu_cap
        total.mem_cap += sign * node.mem_cap
        total.gpu_cap += sign * gpu_cap
        for k in range(FRAG_CLASSES):
            total.frag[k] += sign * frag[k]
        total.cpu_mw += sign * self.cpu_mw[n]
        total.gpu_mw += sign * self.gpu_mw[n]

    cdef void count_partitions(self, int n, int64_t sign, bint used) noexcept nogil:
        """Add or remove the partitioned GPUs of node ``n``."""
        self.total.gpus_of_used_nodes += sign * used * self.mig_gpus[n]
        self.total.gpus_used += sign * ((self.mig_used[n] + FULL - 1) // FULL)
        self.total.gpu_alloc += sign * self.mig_used[n]
        self.total.gpu_cap += sign * self.mig_gpus[n] * FULL

    cpdef int verify(self) except -1:
        """Recompute every total from the columns and check the bounds of every node.

        Each node's own fragmentation, by far the slowest part, is recomputed as well unless ``trusted``.
        """
        cdef int n, g
        cdef int64_t cpu_mw, gpu_mw
        cdef Node node, stored
        cdef Totals total = self.total
        memset(&self.total, 0, sizeof(Totals))
        for n in range(self.count):
            if not self.present[n]:
                continue
            assert 0 <= self.cpu_left[n] <= self.cpu_cap[n], f"node {n}: cpu_left {self.cpu_left[n]}"
            assert 0 <= self.mem_left[n] <= self.mem_cap[n], f"node {n}: mem_left {self.mem_left[n]}"
            assert 0 <= self.pods[n] <= self.max_pods[n], f"node {n}: pods {self.pods[n]}"
            assert 0 <= self.mig_used[n] <= FULL * self.mig_gpus[n], f"node {n}: {self.mig_used[n]} milli of instances"
            for g in range(self.width):
                assert 0 <= self.gpu_left__ng[n, g] <= (FULL if g < self.num_gpu[n] else 0), f"node {n}: GPU {g}"
            node = self.from_columns(n)
            stored = self.at(n)
            # One number at a time: tuples would be slower than everything else here.
            assert node.cpu_left == stored.cpu_left and node.mem_left == stored.mem_left, f"node {n}: two states"
            cpu_mw = power_cpu(&node, node.cpu_left)
            gpu_mw = power_gpu(&node) + power_mig(&node, self.mig_gpus[n], self.mig_used[n])
            assert cpu_mw == self.cpu_mw[n] and gpu_mw == self.gpu_mw[n], (
                f"node {n}: cached power is not {(cpu_mw, gpu_mw)} mW")
            if not self.trusted:
                verify_frag(self, n, &node)
            assert self.free[n] == device_free_milli(&node), f"node {n}: cached {self.free[n]} milli-GPU"
            assert stored.idle == device_idle_count(&node), f"node {n}: cached {stored.idle} idle devices"
            assert stored.most == device_most(&node), f"node {n}: cached {stored.most} milli-GPU on one device"
            assert stored.slots == self.max_pods[n] - self.pods[n], f"node {n}: cached {stored.slots} pod slots"
            assert self.spare[n] == SPARE * stored.idle + stored.most, f"node {n}: cached {self.spare[n]} spare"
            self.count_node(n, 1)
        assert memcmp(&total, &self.total, sizeof(Totals)) == 0, f"totals drifted: {total} is not {self.total}"
        return 0


cdef int verify_frag(NodeTable table, int n, const Node* node) except -1:
    """Check the stored fragmentation and view of a node against plain sums."""
    cdef int64_t[FRAG_CLASSES] classes
    cdef View fresh, stored
    cdef int k
    frag = frag_amount(node.cpu_left, node.gpu_left, node, &table.target.typical)
    assert isnan(node.frag) or frag == node.frag, f"node {n}: cached fragmentation {node.frag} is not {frag}"
    frag_classes(node.cpu_left, node.gpu_left, node, &table.target.typical, table.target.typical.count, &classes[0])
    for k in range(FRAG_CLASSES):
        assert table.frag__nk[n, k] == classes[k], f"node {n}: fragmentation class {k}"
    grouped_view(&table.records[n], &table.target.groups, table.target.groups.scratch, &fresh)
    table.viewed = -1
    table.load_view(&table.records[n], n, &stored)
    assert memcmp(fresh.fit, stored.fit, 3 * table.target.groups.n * sizeof(int32_t)) == 0, f"node {n}: another view"
    return 0
