"""Offline evaluation and benchmarks. Nobody imports it."""
