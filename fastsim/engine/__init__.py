"""The common parts of all engines: result tables, the summary row, totals, checkpoint folders.

In come rows that compiled loops wrote, out goes a result. Each engine has a folder: pods placed one by one in
``online``, containers in ``monitored``, jobs in rounds in ``shares``, ``orders`` and ``adaptive`` over ``rounds``.
Open ``result`` first, then ``tables``.
"""
