"""Key terms of a contract: what they say, where they stand, and which are not stated."""
