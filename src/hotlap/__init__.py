"""hotlap: find out why a PyTorch training script is slow, and prove it."""

from __future__ import annotations

__version__ = "0.1.0"
