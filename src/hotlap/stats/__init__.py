"""Numbers in, numbers out: pure functions on the standard library, methods cited."""
