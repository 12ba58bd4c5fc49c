"""Which plan: knobs that answer what was found, tried in turn, kept where they are proven.

``candidates``   asks every knob whether it applies, and puts those that do in order
``verdict``      what the runs of two arms say of a knob
``search``       tries them one after the other, and diagnoses anew after each that is kept
``proof``        that the training is still the same
``confirm``      the whole plan against the command as it stands, in a fixed order
``plans``, ``plan_file``, ``fingerprint``  the plan, its file, and where it holds
"""
