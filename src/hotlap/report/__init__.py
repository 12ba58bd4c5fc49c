"""Show a summary: as text for a terminal and as JSON. Reads, never computes."""
