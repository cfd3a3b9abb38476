"""`bench kernels`: each op against its reference and its peers, as a share of measured ceilings.

An op's cases are one file in `cases/`; a new file there is found by itself (see `registry`).
"""
