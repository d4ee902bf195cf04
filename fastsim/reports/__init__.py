"""Results for readers: tables, charts, one HTML page, text, Kubernetes objects.

Inputs are results, outputs texts and files; no result changes. Charts need the extra ``report``.
Open ``report`` first: it defines the parts of a page. Single charts are in ``charts``.
"""
