"""Pods placed one by one."""
