"""The training whose records lie beside this file."""

from __future__ import annotations

import time

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(0.0005)
        return torch.full((8,), float(index)), torch.tensor(float(index % 7))


def main() -> None:
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    training = DataLoader(Squares(), batch_size=8, num_workers=2)
    held_out = DataLoader(Squares(), batch_size=32)
    for epoch in range(3):
        model.train()
        for inputs, targets in training:
            loss = (model(inputs).squeeze(1) - targets).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total = loss.item()
        model.eval()
        with torch.no_grad():
            for inputs, _ in held_out:
                model(inputs)
        print("epoch", epoch, total)
        torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
