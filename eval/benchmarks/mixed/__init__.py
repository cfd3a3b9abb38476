"""`fineprint bench mixed`: many documents at once, sent to a running server."""
