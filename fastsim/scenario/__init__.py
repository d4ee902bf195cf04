"""Everything that decides a run, as values and texts.

In come the arguments of ``simulate`` or a TOML file, out goes a scenario with an id; nothing is opened here.
Open ``scenario`` first, then ``run_rules``.
"""
