"""The only code that patches torch: one place per file, typed events, one undo stack.

A *site* is a module of this package with three names:

* ``MODULES``: the modules whose import makes the place exist,
* ``CHANNELS``: the names of the events that it fires,
* ``install(hub, patches)``: put the hooks in, through ``patches`` so that they can be undone.

``catalogue`` lists them all. A site without a subscriber is not installed and costs nothing.
"""
