"""One optimisation per file: where it applies, how it is put on and taken off, what proves it.

A knob is a module with:

* ``NAME``, ``PHASE``: its name, and the step or run phase that it makes shorter,
* ``NUMERICS``: the classes that it may have, of ``values.knob.NUMERICS``,
* a docstring, which is its page under ``docs/knobs``,
* ``applies(case) -> Offer | No``: from facts alone, outside of the training; loads no torch,
* ``environment(value, environ) -> dict``: variables that must be set before the process starts,
* ``apply(target, value)``: inside the training process, before the script's code runs,
* ``snippet(value) -> str``: the same change as code that the user can paste.

``catalogue`` lists them all, ``offers`` has what all ask alike. ``target`` is what ``apply`` works
on: it undoes what was done, and keeps the proof that it acted.
"""
