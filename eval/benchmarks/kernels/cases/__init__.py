"""One file an op: `cases(setup)` yields its cases, odd shapes to compare and real ones to time."""
