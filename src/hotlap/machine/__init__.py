"""What the machine says: its cores, memory, disks, network and GPUs, as facts and as samples.

========================  ========================================================================
module                    reads
========================  ========================================================================
``cpu``, ``cgroup``       cores visible, allowed and granted; throttling; busy time; instructions
``memory``                memory, its limit, ``/dev/shm``, swap
``pressure``              pressure stall information
``processes``             memory and CPU time of a tree of processes
``mounts``, ``disks``     file systems behind paths, bytes read and written
``network``               bytes per interface
``gpu``                   NVIDIA GPUs by NVML
``kernel``                facilities that the probe wants
``allocators``            faster allocators that are installed
``interpreter``           the user's own Python: its torch and its decoders
``facts``                 all that stays the same during a run, as one JSON object
``sampler``               all that changes, once per call
``checks``                what ``hotlap doctor`` says about it
========================  ========================================================================

Each reading is a pure parser of text and a thin reader with a ``root`` folder, ``/`` in real use.
A reader never raises because something is not there: it returns None.
"""
