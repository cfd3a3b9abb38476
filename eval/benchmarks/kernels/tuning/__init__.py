"""`bench kernels --tune`: tries a kernel's constants on this card and writes its tuning table."""
