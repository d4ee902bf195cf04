"""Schedulers that read GPU metrics before they admit a pod.

A scheduler takes readings and waiting pods and returns bindings of pods to GPUs.
Open ``admission`` first.
"""
