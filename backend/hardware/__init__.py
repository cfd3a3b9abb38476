"""What the machine says of itself: GPUs, their temperature, memory and links. Knows no model and no
requests."""
