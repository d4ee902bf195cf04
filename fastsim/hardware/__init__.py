"""What a node is made of and a pod may ask of it: GPU and CPU models, MIG, constraints.

In come names of products and layouts of partitions, out go watts, memory and whether a node will do.
Open ``model_catalog`` first, then ``node_constraints``.
"""
