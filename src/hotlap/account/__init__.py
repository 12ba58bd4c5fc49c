"""A record in, a summary out: what the time of a run was spent on. Pure."""

from hotlap.account.summarise import summarise

__all__ = ["summarise"]
