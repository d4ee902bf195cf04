"""Questions to a cluster as it is now: which nodes can be emptied, and how boards are best divided.

Inputs are nodes with pods that run and pods that wait; outputs are plans with the places that the engine gives to pods.
Open ``consolidation`` first; ``mig_layouts`` divides boards, ``relocation`` moves pods.
"""
