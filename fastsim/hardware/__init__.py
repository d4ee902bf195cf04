"""Hardware of nodes: GPU and CPU models, MIG partitions, and the constraints of pods on nodes.

In come names of products and layouts of partitions, out go watts, memory and whether a node suits a pod.
Open ``model_catalog`` first, then ``node_constraints``.
"""
