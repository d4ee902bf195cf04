"""The part of a run's input that each engine uses: columns of the pod table, options of a scenario.

In come the tables ``simulation/tables/columns.csv`` and ``options.csv``, which have a cell for each engine; out go
refusals and warnings. A new column or option without a line fails the tests.
Open ``cells`` first.
"""
