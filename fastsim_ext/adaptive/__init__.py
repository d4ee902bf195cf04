"""Rounds of adaptive jobs, goodput, genetic search.

``loop`` plays the rounds over objects of ``training_job``; the others are kernels.
Open ``training_job`` first.
"""
