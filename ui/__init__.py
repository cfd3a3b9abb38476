"""Gradio pages that speak HTTP to the REST API and to nothing else."""
