"""What we speak about: frozen values, no I/O, no torch, standard library only."""
