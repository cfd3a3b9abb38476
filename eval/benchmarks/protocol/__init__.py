"""`fineprint bench protocol`: many documents at once inside one engine, and what each of its
switches is worth."""
