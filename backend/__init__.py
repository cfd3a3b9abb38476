"""The engine: token ids in, token ids out. Knows no documents, files, databases or HTTP."""
