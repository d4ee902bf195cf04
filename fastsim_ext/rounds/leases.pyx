"""The GPUs of each task in a round, and whether it keeps those of the last round.

GPUs of a model have consecutive numbers. Largest gangs choose first; among equal ones, those that can keep the GPUs
of the last round come before those that take the next free ones.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy
from fastsim_ext.memory cimport memory_grown


cdef void* zeros(int64_t count, int64_t size) except NULL:
    cdef void* block = calloc(max(count, 1), size)
    if block == NULL:
        raise MemoryError()
    return block


@cython.final
cdef class Leases:
    """Tasks of this round and of the last one; ``gpus_by_model`` has the number of GPUs of each model."""

    def __cinit__(self, gpus_by_model):
        cdef int32_t g
        self.width = len(gpus_by_model)
        self.base = <int32_t*> zeros(self.width + 1, sizeof(int32_t))
        for g in range(self.width):
            self.base[g + 1] = self.base[g] + gpus_by_model[g]
        self.gpus = self.room = self.base[self.width]
        self.tasks = <Task*> zeros(self.gpus, sizeof(Task))
        self.last = <Task*> zeros(self.gpus, sizeof(Task))
        self.gpu = <int32_t*> zeros(self.gpus, sizeof(int32_t))
        self.last_gpu = <int32_t*> zeros(self.gpus, sizeof(int32_t))
        self.stamp = <int64_t*> zeros(self.gpus, sizeof(int64_t))
        self.busy_s = <double*> zeros(self.gpus, sizeof(double))
        self.present = <int32_t*> zeros(self.width, sizeof(int32_t))
        self.count_present()

    def follow(self, NodePresence presence not None):
        """From now on only the GPUs of nodes that are there can be taken."""
        if presence.node_of_gpu.shape[0] != self.gpus:
            raise ValueError(f"nodes of {presence.node_of_gpu.shape[0]} GPUs, expected {self.gpus}")
        self.presence = presence
        self.count_present()

    def __dealloc__(self):
        free(self.base)
        free(self.present)
        free(self.tasks)
        free(self.last)
        free(self.gpu)
        free(self.last_gpu)
        free(self.stamp)
        free(self.busy_s)

    cdef int reserve(self, int32_t tasks) except -1 nogil:
        """Room for so many tasks: those without GPUs may be more than there are GPUs."""
        if tasks > self.room:
            self.tasks = <Task*> memory_grown(self.tasks, 2 * tasks, sizeof(Task))
            self.last = <Task*> memory_grown(self.last, 2 * tasks, sizeof(Task))
            self.room = 2 * tasks
        return 0

    cdef void begin(self) noexcept nogil:
        """This round's tasks become the last round's; no task can take an absent GPU."""
        cdef int32_t gpu
        self.tasks, self.last = self.last, self.tasks
        self.gpu, self.last_gpu = self.last_gpu, self.gpu
        self.n_last, self.n, self.n_held = self.n, 0, 0
        self.turn += 1
        if self.presence is not None:
            for gpu in range(self.gpus):
                if self.presence.is_absent(gpu):
                    self.stamp[gpu] = self.turn

    cdef void count_present(self) noexcept nogil:
        """Count the GPUs that are there."""
        cdef int32_t g, gpu
        for g in range(self.width):
            self.present[g] = self.base[g + 1] - self.base[g]
            if self.presence is not None:
                for gpu in range(self.base[g], self.base[g + 1]):
                    self.present[g] -= self.presence.is_absent(gpu)

    cdef bint is_lost(self, const Task* task) noexcept nogil:
        """Whether a node of a task goes away before the task is finished."""
        return self.presence is not None and self.presence.goes(&self.gpu[task.held], task.num_gpu, task.finish_s)

    def present_gpus(self):
        """GPUs that are there, by model."""
        return [self.present[g] for g in range(self.width)]

    cdef void place(self) noexcept nogil:
        """Give every task its GPUs."""
        cdef int32_t g
        for g in range(self.width):
            self.place_model(g)

    cdef void place_model(self, int32_t model) noexcept nogil:
        cdef int32_t position = self.base[model]
        cdef int32_t below = self.gpus + 1
        cdef int32_t size, i
        cdef Task* task
        while True:
            size = 0
            for i in range(self.n):
                task = &self.tasks[i]
                if task.model == model and task.num_gpu < below and task.num_gpu > size:
                    size = task.num_gpu
            if size == 0:
                return
            for i in range(self.n):
                task = &self.tasks[i]
                if task.model == model and task.num_gpu == size:
                    task.kept = self.take_again(task)
            for i in range(self.n):
                task = &self.tasks[i]
                if task.model == model and task.num_gpu == size and not task.kept:
                    position = self.take(task, position)
            below = size

    cdef bint take_again(self, Task* task) noexcept nogil:
        """The GPUs of the last round, if they are of this model and all free."""
        cdef const int32_t* old
        cdef int32_t i
        if task.before < 0 or self.last[task.before].model != task.model:
            return False
        old = &self.last_gpu[self.last[task.before].held]
        for i in range(task.num_gpu):
            if self.stamp[old[i]] == self.turn:
                return False
        task.held = self.n_held
        for i in range(task.num_gpu):
            self.stamp[old[i]] = self.turn
        memcpy(&self.gpu[self.n_held], old, task.num_gpu * sizeof(int32_t))
        self.n_held += task.num_gpu
        return True

    cdef int32_t take(self, Task* task, int32_t position) noexcept nogil:
        """The next free GPUs from ``position`` on; returns where to look next."""
        cdef int32_t left = task.num_gpu
        task.held = self.n_held
        while left:
            if self.stamp[position] != self.turn:
                self.stamp[position] = self.turn
                self.gpu[self.n_held] = position
                self.n_held += 1
                left -= 1
            position += 1
        # The same GPUs by chance are as good as kept.
        task.kept = task.before >= 0 and self.last[task.before].num_gpu == task.num_gpu and memcmp(
            &self.gpu[task.held], &self.last_gpu[self.last[task.before].held], task.num_gpu * sizeof(int32_t)
        ) == 0
        return position

    cdef void count(self) noexcept nogil:
        """Of the last round's tasks with a job that goes on, how many have the same GPUs again."""
        cdef int32_t i
        for i in range(self.n_last):
            self.opportunities += self.last[i].alive
        for i in range(self.n):
            self.extensions += self.tasks[i].kept

    def busy(self):
        """Busy seconds of each GPU."""
        return [self.busy_s[i] for i in range(self.gpus)]

    cpdef int verify(self) except -1:
        """Every GPU has one holder at most, of its own model."""
        cdef int32_t i, j
        holders = set()
        for i in range(self.n):
            for j in range(self.tasks[i].held, self.tasks[i].held + self.tasks[i].num_gpu):
                assert self.gpu[j] not in holders, f"GPU {self.gpu[j]} is held twice"
                holders.add(self.gpu[j])
                assert self.base[self.tasks[i].model] <= self.gpu[j] < self.base[self.tasks[i].model + 1], \
                    f"GPU {self.gpu[j]} is not of model {self.tasks[i].model}"
        return 0
