"""Building blocks of the models: linear layers, norms and rotary positions."""
