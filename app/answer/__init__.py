"""From evidence and generated text to a checked, cited answer.

Knows documents as text with offsets and answers as text; does not know the engine, the database
or the doors.
"""
