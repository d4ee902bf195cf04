"""A scenario becomes a result.

In come the fields of a scenario, texts or objects; out goes a result with its provenance. Texts are opened here, the
engine is chosen by the policy, warnings are given, and a run can be resumed or forked.
Open ``simulate`` first, then ``engines``, where each engine prepares and plays its scenarios.
"""
