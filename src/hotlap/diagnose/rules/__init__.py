"""One rule per file: ``CODE``, ``NAME``, ``check(facts)``, and a docstring that is its page."""
