"""A switch that has to be turned before anything else of the inside is imported."""

off = False
