"""Random numbers by seed: streams of fastsim's own, and the generator of Go by which the FGD experiments draw.

Open ``random_streams`` first.
"""
