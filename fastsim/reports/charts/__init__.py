"""Single charts, with their files, series and sizes.

Inputs are results or workloads, outputs charts of Altair, or files for other tools such as a Chrome trace.
Open ``chart_files`` first.
"""
