"""Benchmarks of speed: first-token times, mixed load, decoding, kernels."""
