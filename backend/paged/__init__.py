"""Contexts of requests in pages, and steps of the model on many of them at once (on GPUs)."""
