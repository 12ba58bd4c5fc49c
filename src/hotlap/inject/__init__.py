"""Get into an unmodified script.

``site/sitecustomize.py``  the door: found by Python at start-up through PYTHONPATH, waits for torch
``session``                hub, patches and recorder of one process, from start to undo
``conditions/``             what a trial does inside: windows, changes, the clean stop, the profile
"""
