"""The hooks of what every training step does: compiled where they can be, and in Python.

``_hooks``     compiled from C, when hotlap was built; it may be missing, or of another Python
``reference``  the same in Python: what the compiled ones have to do, and their stand-in
``choice``     which of the two this process uses
"""
