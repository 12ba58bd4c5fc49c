"""What happens inside a trial: other conditions for the same script, one after the other.

``conductor``   goes from window to window at the ends of steps, and writes what each measured
``windows``     the kinds of windows, one entry each; ``measure`` what one over steps counts
``replay``, ``drain``, ``operators``  the conditions themselves
``deliveries``, ``batches``  what the training loaders gave, and what is kept of it
``ranks``, ``stop``          the same step on all ranks, and the clean end
``settings``    single changes that a trial tries, with their proof: knobs, and what is none
``switches``    how torch's own switches stood meanwhile
``profiling``, ``sampler``, ``profile``  stacks of trainer and workers
"""
