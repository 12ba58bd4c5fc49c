"""A package that is trained with `python -m styles_pkg.train`."""
