"""Policies: small declarative classes that answer with a plan."""
