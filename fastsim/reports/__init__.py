"""Results for readers: tables, charts, one HTML page, text, Kubernetes objects.

In come results, out go texts and files; no result changes. Charts need the extra ``report``.
Open ``report`` first: it says what a page has. Single charts are in ``charts``.
"""
