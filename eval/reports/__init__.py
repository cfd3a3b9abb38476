"""Reports that compare runs: one HTML page and one Markdown file.

Reads finished or partial runs; makes none and measures nothing.
"""
