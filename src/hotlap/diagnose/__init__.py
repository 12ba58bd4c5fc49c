"""Name what costs time: facts in, findings out. Pure: the same facts give the same diagnosis.

``judge`` asks every rule of the catalogue and ranks what they find; ``wishes`` says which
experiments would settle what is only suspected.
"""

from hotlap.diagnose.judge import judge
from hotlap.diagnose.wishes import wishes

__all__ = ["judge", "wishes"]
