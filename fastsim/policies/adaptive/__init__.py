"""Policies for adaptive jobs: one file each, declarations only, without numpy."""
