# mypy: ignore-errors
"""Reads data sets' byte code under whichever Python runs it, with a stand-in for torch."""

import sys
import types

torch = types.ModuleType("torch")
data = types.SimpleNamespace(TensorDataset=type("T", (), {}), Subset=type("S", (), {}))
torch.utils = types.SimpleNamespace(data=data)
torch.long = type("dtype", (), {})()
torch.tensor = None
sys.modules["torch"] = torch

from hotlap.knobs.plain_samples import NoPlan, plan_of  # noqa: E402 - torch must be there first


class Pair:
    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Dicts:
    def __getitem__(self, index):
        x = self.x[index]
        y = self.y[index]
        return {"x": x, "y": y, "i": index}


class Lists:
    def __getitem__(self, i):
        x = torch.from_numpy(self.x[i])
        y = torch.tensor(self.y[i], dtype=torch.long)
        return [x, y, (self.t[i].float(), int(self.y[i]), self.t[i].astype("float64"))]


class Computes:
    def __getitem__(self, i):
        return self.x[i] + 1


class Branches:
    def __getitem__(self, i):
        return self.x[i] if self.s else self.t[i]


class Deeper:
    def __getitem__(self, i):
        return self.t[i][0]


def kinds(node):
    """Return a plan as nested names."""
    if hasattr(node, "nodes"):
        return [node.kind.__name__, *node.keys, *map(kinds, node.nodes)]
    return [type(node).__name__, *(str(one) for one in node[:1] if isinstance(one, str))]


assert kinds(plan_of(Pair())) == ["tuple", ["Row", "x"], ["Row", "y"]]
assert kinds(plan_of(Dicts())) == ["dict", "x", "y", "i", ["Row", "x"], ["Row", "y"], ["Index"]]
lists = plan_of(Lists())
assert kinds(lists)[:3] == ["list", ["Converted"], ["Converted"]]
assert lists.nodes[1].kwargs == (("dtype", torch.long),)
assert [one.how for one in lists.nodes[2].nodes] == [".float", "int", ".astype"]
for kind in (Computes, Branches, Deeper):
    try:
        plan_of(kind())
    except NoPlan:
        continue
    raise AssertionError(kind)
