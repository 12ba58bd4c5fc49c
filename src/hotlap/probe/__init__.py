"""Measure from inside: subscribe to sites, keep exclusive time accounts, write the run's record.

``ledger``    exclusive time accounts of one thread
``timeline``  steps, evaluation, epoch edges: what the accounts are cut by
``stretches`` time that may turn out to be evaluation
``cycle``     which optimizer's step ends a cycle of several
``journal``   ticks -> detail and windows -> frames on disk, bounded in size
``loaders``, ``models``, ``optimizers``, ``touches``, ``fetches``, ``device``: one subject each
``recorder``  wires them to the sites of one process

Standard library only; nothing here raises into the training (sites catch, report and go silent).
"""
