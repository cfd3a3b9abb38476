"""One file per step, newest last."""
