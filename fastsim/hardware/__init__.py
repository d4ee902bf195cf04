"""What a node is made of and a pod may ask of it: GPU and CPU models, MIG, node constraints."""
