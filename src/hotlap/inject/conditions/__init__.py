"""What happens inside a trial: other conditions for the same script, one after the other.

``conductor``   goes from window to window at the ends of steps, and writes what each measured
``windows``     the kinds of windows, one entry each
``replay``, ``drain``  the conditions themselves; ``deliveries``, ``batches`` what they need
``ranks``, ``stop``    the same step on all ranks, and the clean end
``settings``    single changes that a trial tries
"""
