"""Policies that look at what GPUs report before they admit a pod."""
