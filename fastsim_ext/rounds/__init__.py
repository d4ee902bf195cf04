"""The round loop: from shares of the time, and in an order.

In come columns of jobs, out go records of jobs, tasks and rounds. A loop returns when Python must act.
Open ``loop`` and ``share_loop`` first, then ``job_table``.
"""
