"""Runs of a question set: one configuration, one folder, one record a question."""
