"""Where pages go beyond the pool: files of a folder. Knows bytes, no tensors and no model."""
