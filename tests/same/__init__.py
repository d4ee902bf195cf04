"""The bytes of runs by this checkout and by another revision: see ``__main__``."""
