"""What hotlap itself costs, measured on the machine at hand: ``make bench``.

``overhead``  a training step with the hooks in and out, and whole runs beside other tools
``rivals``    those other tools, each in an environment of its own
``start``     imports, launch and exit
``size``      the flush once a second, the size of a record, the time to read it
``scripts``   the training that is measured, as a user would write it

Method and figures: docs/benchmarks.md.
"""
