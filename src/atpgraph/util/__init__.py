"""Helpers shared by every part: files, archives, progress, threads, kernels, errors of input.

Nothing here imports another part of the package, so any part (and `atpgraph-qa`) may use it.
"""
