"""The event loop, its rules and its waiting line.

In come columns of pods, out go rows of events and outcomes. Each loop adds something to the one below it: rules, a
queue, a trace of decisions, single steps.
Open ``loop`` first.

The life of a pod. Every step has the name of the function that takes it::

                        drop
       arrives ------------------------------> never placed
         |   \\
   admit |    \\ start_bound
         v     v
      waits -- start --> runs -- depart --> finished
        ^                 | |
        |   interrupt     | |-- lose --> lost
        +-----------------+ |
                            +-- evict, then move or discard (closing stages)

``admit`` starts a pod, drops it, or lets it wait: ``enqueue`` puts it into the line, ``dequeue`` takes it out.
``start`` asks ``choose`` for a node and devices, and ``allocate`` takes them. The members of a gang ``begin_work`` one
after another; then ``schedule_end`` plans their departures, or ``deallocate`` takes them all back. Preemption and the
failure of a node ``interrupt`` pods that may wait again, and ``lose`` the others.
"""
