"""Text in, ranked chunks out. Knows no torch, no database and no HTTP."""
