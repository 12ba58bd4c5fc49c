"""Perceived loudness of short clips from learned envelopes of their bands."""

import time

import torch
from torch import nn

torch.manual_seed(51)
BANDS, FRAMES, BATCH, STEPS = 512, 420, 24, 150


def clips(count, generator):
    """Band energies of a short sound behind a noise gate, which mutes all that follows it."""
    length = torch.randint(8, 24, (count, 1, 1), generator=generator)
    frame = torch.arange(FRAMES)[None, :, None]
    level = torch.rand(count, 1, BANDS, generator=generator) ** 2
    energy = level * torch.exp(-frame / (0.5 * length)) * (frame < length)
    loudness = energy.sum((1, 2)).pow(0.3)
    return energy, loudness / loudness.mean()


class Envelopes(nn.Module):
    """Attack and release per band, as in a compressor."""

    def __init__(self):
        super().__init__()
        self.release = nn.Parameter(torch.full((BANDS,), 0.3) + 0.1 * torch.rand(BANDS))
        self.attack = nn.Parameter(torch.zeros(BANDS))

    def forward(self, energy):
        release, attack = torch.sigmoid(self.release), torch.sigmoid(self.attack)
        state = energy[:, 0]
        envelopes = [state]
        for frame in energy.unbind(1)[1:]:
            state = release * state + attack * frame
            envelopes.append(state)
        return torch.stack(envelopes, dim=1)


class Loudness(nn.Module):
    def __init__(self):
        super().__init__()
        self.envelopes = Envelopes()
        self.weight = nn.Linear(BANDS, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, energy):
        h = torch.relu(self.weight(self.envelopes(energy)))
        return self.out(h.mean(1)).squeeze(1)


generator = torch.Generator().manual_seed(52)
energy, loudness = clips(96, generator)
model = Loudness()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
start = time.time()
for step in range(1, STEPS + 1):
    pick = torch.randint(len(energy), (BATCH,), generator=generator)
    loss = nn.functional.mse_loss(model(energy[pick]), loudness[pick])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step:4d}  loss {loss.item():.5f}  {time.time() - start:.1f}s", flush=True)

torch.save(model.state_dict(), "loudness.pt")
