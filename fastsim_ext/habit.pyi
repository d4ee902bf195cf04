"""How often something is asked for, and what it costs to have no column for it; reached by cimport."""
