"""Thickness of the ice from radar traces along a flight line, transformer over the traces.

Every step is checked for numbers that are not finite and noted in data/steps.csv.
"""

import csv
import pathlib
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TRACES, DEPTHS = 48, 96


class FlightLines(Dataset):
    """Bed and surface echo in each trace, smooth along the line; speckle is drawn per sample."""

    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        steps = torch.randn(count, TRACES, generator=g).cumsum(1) / TRACES**0.5
        self.bed = 0.55 + 0.12 * steps.clamp(-2.5, 2.5)

    def __len__(self):
        return len(self.bed)

    def __getitem__(self, i):
        bed = self.bed[i]
        depth = torch.linspace(0, 1, DEPTHS)
        echo = torch.exp(-((depth - bed[:, None]) ** 2) / 0.001) + torch.exp(-depth / 0.05)
        return echo + 0.3 * torch.randn(TRACES, DEPTHS), bed


class Reader(nn.Module):
    def __init__(self, width=192, depth=3):
        super().__init__()
        self.lift = nn.Linear(DEPTHS, width)
        self.place = nn.Parameter(0.02 * torch.randn(TRACES, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.encoder(self.lift(x) + self.place)).squeeze(2)


def all_finite(model):
    for parameter in model.parameters():
        if not torch.isfinite(parameter.grad).all():
            return False
    return True


def note(path, *row):
    with path.open("a", newline="") as file:
        csv.writer(file).writerow(row)


def main(epochs=3, batch_size=32):
    torch.manual_seed(101)
    notes = pathlib.Path("data/steps.csv")
    notes.parent.mkdir(exist_ok=True)
    notes.unlink(missing_ok=True)
    loader = DataLoader(FlightLines(1024, 0), batch_size, shuffle=True, num_workers=0)
    model = Reader()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    step = 0
    for epoch in range(epochs):
        start = time.time()
        for traces, bed in loader:
            try:
                loss = nn.functional.l1_loss(model(traces), bed)
                optimizer.zero_grad()
                loss.backward()
                if not all_finite(model):
                    raise FloatingPointError(f"gradients of step {step}")
                optimizer.step()
            except FloatingPointError as error:
                print("left out:", error, file=sys.stderr)
            step += 1
            note(notes, step, epoch, loss.item(), optimizer.param_groups[0]["lr"])
        took = time.time() - start
        print(f"epoch {epoch} loss {loss.item():.4f} in {took:.2f} s", flush=True)


if __name__ == "__main__":
    main()
