"""The event loop, its rules and its waiting line.

In come columns of pods, out go rows of events and outcomes. Each loop adds something to the one below it: rules, a
queue, a trace of decisions, single steps.
Open ``loop`` first.
"""
