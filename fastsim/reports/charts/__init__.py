"""Single charts, and what all of them need: files, series, sizes.

In come results or workloads, out go charts of Altair, or files for other tools such as a Chrome trace.
Open ``chart_files`` first.
"""
