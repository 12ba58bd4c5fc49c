"""Fit a decaying network of delays to a room."""

import time

import torch
from torch import nn

torch.manual_seed(51)
torch.set_flush_denormal(True)
LINES, FRAMES, BATCH = 384, 60, 64


def rooms(count, generator):
    """A click, and its energy in each band and frame as a room would answer."""
    level = torch.rand(count, LINES, generator=generator)
    rate = 1.5 + 0.3 * torch.rand(count, 1, generator=generator)
    frame = torch.arange(FRAMES)[None, :]
    return level, torch.exp(-rate * frame)


class Echoes(nn.Module):
    """Energy that circulates between delay lines and is damped on each round."""

    def __init__(self):
        super().__init__()
        mixing = torch.linalg.qr(torch.randn(LINES, LINES)).Q.abs()
        self.mixing = nn.Parameter(mixing / mixing.sum(1, keepdim=True))
        self.decay = nn.Parameter(torch.full((LINES,), 0.2))
        self.ear = nn.Linear(LINES, 1)

    def forward(self, level):
        state, heard = level, []
        for _ in range(FRAMES):
            heard.append(self.ear(state))
            state = self.decay * (state @ self.mixing)
        return torch.cat(heard, dim=1)


generator = torch.Generator().manual_seed(52)
level, answer = rooms(1024, generator)
model = Echoes()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
start = time.time()
steps = 200
for step in range(1, steps + 1):
    pick = torch.randint(len(level), (BATCH,), generator=generator)
    loss = nn.functional.mse_loss(model(level[pick]), answer[pick])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        model.decay.clamp_(0.05, 0.6)
        model.mixing.clamp_(min=0)
    if step % 20 == 0:
        print(f"step {step:4d}  loss {loss.item():.5f}  {time.time() - start:.1f}s", flush=True)

torch.save(model.state_dict(), "room.pt")
