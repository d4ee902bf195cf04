# Arrays that grow; prefetch and large pages, on which nothing but speed depends.
from libc.stdint cimport int64_t
from libc.stdlib cimport realloc

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #if defined(__GNUC__)
    #define fastsim_prefetch(at) __builtin_prefetch(at)
    #else
    #define fastsim_prefetch(at) ((void) (at))
    #endif
    #if defined(__linux__)
    #include <sys/mman.h>
    #endif
    #define FASTSIM_LARGE_PAGE ((uintptr_t) 1 << 21)

    /* The first cache line that begins at or after a place. */
    #define fastsim_line(at) ((void *) (((uintptr_t) (at) + 63) & ~(uintptr_t) 63))

    /* Only whole pages within the block, so that no more memory is taken than was requested. */
    static inline void fastsim_large_pages(void *at, size_t bytes) {
    #if defined(__linux__) && defined(MADV_HUGEPAGE)
        uintptr_t first = ((uintptr_t) at + FASTSIM_LARGE_PAGE - 1) & ~(FASTSIM_LARGE_PAGE - 1);
        uintptr_t last = ((uintptr_t) at + bytes) & ~(FASTSIM_LARGE_PAGE - 1);
        if (last > first)
            (void) madvise((void *) first, last - first, MADV_HUGEPAGE);
    #else
        (void) at;
        (void) bytes;
    #endif
    }
    """
    void ahead "fastsim_prefetch"(const void* at) noexcept nogil
    void* ahead_line "fastsim_line"(void* at) noexcept nogil
    void ahead_pages "fastsim_large_pages"(void* at, size_t bytes) noexcept nogil

cdef inline void* memory_grown(void* items, int64_t count, int64_t size) except NULL nogil:
    """Room for so many items, those that are there kept."""
    cdef void* more = realloc(items, count * size)
    if more == NULL:
        with gil:
            raise MemoryError()
    return more
