"""Placement policies for pods."""
