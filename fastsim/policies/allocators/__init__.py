"""The working halves of ``shares`` without a program: queues, pairs, equal parts.

In comes a view of the jobs, out go shares of the time. An allocator remembers what it has to between rounds.
Open ``equal_shares`` first.
"""
