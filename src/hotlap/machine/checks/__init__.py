"""What ``hotlap doctor`` says about a machine: ``gather`` reads, ``catalogue.judge`` says."""
