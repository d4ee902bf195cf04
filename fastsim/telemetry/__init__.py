"""Readings of GPUs: model, table, files, Prometheus, exporter."""
