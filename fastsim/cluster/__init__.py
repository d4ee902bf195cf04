"""Nodes: table, types, published clusters, importers, texts."""
