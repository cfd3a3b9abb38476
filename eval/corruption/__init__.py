"""Seeded lies in answers: how many the answer checks mark, and how many true answers they mark too.

`writing` writes values in many forms, `places` finds values in gold texts, `altering` changes
exactly one thing, `statements` makes answers of gold answers, `measuring` checks them as the
product does. None of it uses the readers that the checks use, so that a hole in them shows.
"""
