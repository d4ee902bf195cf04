"""Allocators of share policies that need no linear program: queues, pairs, equal parts.

An allocator takes a view of the jobs and returns shares of the time; it may hold state between rounds.
Open ``equal_shares`` first.
"""
