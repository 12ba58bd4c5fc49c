"""Where runs live: the only code that knows file names and the format on disk.

``frames``     bytes on disk: framed, checksummed records
``recording``  one process appends to its own file (standard library only, never raises)
``store``      the directory of all runs: create, find, list, prune
``reading``    a run directory -> ``values.record.Record``
``fitting``    JSON -> values, after a look at its types
"""
