"""A product of scenarios: file, axes, order, store, table."""
