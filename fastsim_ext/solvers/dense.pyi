"""Symmetric matrices, row after row, and equations with them; only the upper triangle is read and written."""
