# C widths, enums and the three structs every kernel speaks.
from libc.stdint cimport int32_t, int64_t, uint64_t

cdef enum:
    MAX_GPUS = 64        # GPUs of one node; a set of them is one 64-bit mask
    MAX_EXTRA = 16       # further resources of one cluster
    LANES = 8            # GPU rows are padded with 0 to a multiple of this many devices
    FULL = 1000          # milli-GPU of one whole device
    CPU_SPEC = 128000, GPU_SPEC = 8000    # milli-CPU and milli-GPU of the largest node that the formulas cover

cdef enum:  # FragClass: where a node's free GPUs go for one typical pod
    Q1_LACK_BOTH, Q2_LACK_GPU, Q3_SATISFIED, Q4_LACK_CPU, XL_SATISFIED, XR_LACK_CPU, NO_ACCESS, FRAG_CLASSES

cdef enum:  # Kernel: order of fastsim.engine.online.plan.KERNELS
    RANDOM, DOT_PRODUCT, GPU_CLUSTERING, GPU_PACKING, BEST_FIT, FGD, PWR, SIMON, PYTHON

cdef enum:  # Normaliser: order of fastsim.engine.online.plan.NORMALISERS
    NORM_NONE, MIN_MAX_0, MIN_MAX_100

cdef enum:  # GpuPick: order of fastsim.engine.online.plan.GPU_PICKS
    PICK_BEST, PICK_WORST, PICK_RANDOM, PICK_FGD, PICK_PWR, PICK_DOT

cdef enum:  # DotDim: order of fastsim.engine.online.plan.DIMS
    MERGE, SHARE, DIVIDE, EXTEND

cdef enum:  # DotNorm: order of fastsim.engine.online.plan.NORMS
    BY_NODE, BY_POD, BY_MAX

cdef enum:  # Stop: as fastsim.engine.driving.drive.Stop
    DONE, WANT_ARRIVALS, PAUSE                         # of pods and of jobs
    DESCHEDULE_DUE, WANT_NODE_CHANGES, GPU_SAMPLE      # of pods
    ASK_POLICY, PRICE_CHANGE, DRAIN, DEADLOCK          # of jobs in rounds

cdef struct Node:        # the state of one node; *_left is what is free
    int64_t cpu_cap, cpu_left              # milli-CPU
    int64_t mem_cap, mem_left              # MiB
    const int32_t* gpu_left                # milli of each device, padded with 0
    int num_gpu, width, model, cores       # devices; padded devices; model id or -1; physical cores of one socket
    int idle, most                         # devices fully free, the most milli left on one; in NodeTable.records only,
    int slots, kind                        # as are: pods it may still take, a number for nodes alike when empty
    int64_t gpu_idle_mw, gpu_peak_mw, cpu_idle_mw, cpu_peak_mw  # milliwatts of one device, of one socket
    const int32_t* tags                    # pods on the node by GPU tag: 0 shared, k whole k GPUs
    int n_tags
    double frag                            # cached fragmentation, milli-GPU

cdef struct Pod:         # the request of one pod class
    int64_t cpu, mem                       # milli-CPU, MiB
    int num_gpu, milli                     # devices; milli of each
    uint64_t models                        # allowed model ids as bits, 0 = any
    int64_t mig                            # milli of its instances of partitioned GPUs

cdef struct Kind:        # one distinct request for devices, or for none
    int32_t level, num                     # index of its milli among the distinct ones, -1: no devices; devices
    uint64_t models                        # as in Pod

cdef struct Typical:     # the target workload M by columns: classes with devices first, else in its given order
    int n, n_gpu, n_levels, n_kinds        # n_gpu: those with devices
    const int64_t* cpu                     # milli-CPU
    const double* freq                     # share of the workload
    const int64_t* count                   # the same share as an exact integer
    const int32_t* kind                    # which request for devices it makes
    const Kind* kinds                      # all of them
    const int32_t* level_milli             # the distinct milli values
    int32_t* fit                           # scratch: devices with at least level_milli left
    int64_t* small                         # scratch: milli on devices with less than that
    double* unusable__kq                     # scratch: see frag_unusable
