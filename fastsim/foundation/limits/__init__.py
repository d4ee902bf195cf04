"""Limits of one command: bytes that a packed file unpacks to, and work that is estimated before it begins.

Open ``work_budget`` first.
"""
