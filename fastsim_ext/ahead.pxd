# Ask for memory before it is needed; nothing but speed depends on it.
cdef extern from *:
    """
    #if defined(__GNUC__)
    #define fastsim_prefetch(at) __builtin_prefetch(at)
    #else
    #define fastsim_prefetch(at) ((void) (at))
    #endif
    """
    void ahead "fastsim_prefetch"(const void* at) noexcept nogil
