"""Cannot be compiled: exit code 1, and Python's own message about line 7."""

import torch

model = torch.nn.Linear(2, 1)
for step in range(10)
    model(torch.randn(4, 2)).sum().backward()
print("never printed")
