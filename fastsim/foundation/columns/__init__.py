"""Columns of Arrow: equal values in the canonical type, and checksums of content.

Open ``physical_types`` first.
"""
