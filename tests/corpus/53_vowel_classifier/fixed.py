"""Classify vowels from formant tracks."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

VOWELS, BANDS, FRAMES = 8, 40, 32
torch.manual_seed(56)


def vowels(count):
    label = torch.randint(VOWELS, (count,))
    band = torch.arange(BANDS)[None, :, None]
    drift = torch.linspace(-1, 1, FRAMES)[None, None, :] * torch.randn(count, 1, 1)
    first = (5 + 2 * label)[:, None, None] + drift
    second = (34 - 2.5 * label)[:, None, None] + drift
    image = torch.exp(-((band - first) ** 2) / 6) + torch.exp(-((band - second) ** 2) / 6)
    return image + 0.4 * torch.randn_like(image), label


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.score = nn.Conv1d(width, 1, 1)

    def forward(self, x):
        return (x * torch.softmax(self.score(x), dim=2)).sum(2)


model = nn.Sequential(
    nn.Conv1d(BANDS, 128, 5, padding=2),
    nn.BatchNorm1d(128),
    nn.GELU(),
    nn.Conv1d(128, 128, 5, padding=2),
    nn.BatchNorm1d(128),
    nn.GELU(),
    nn.Conv1d(128, 128, 5, padding=2),
    nn.GELU(),
    Attention(128),
    nn.Linear(128, VOWELS),
)
x_train, y_train = vowels(4000)
x_test, y_test = vowels(500)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

for epoch in range(4):
    model.train()
    start = time.time()
    sums = {"loss": 0.0, "accuracy": 0.0, "confidence": 0.0, "spread": 0.0}
    for x, y in loader:
        logits = model(x)
        loss = criterion(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        accuracy = (logits.argmax(1) == y).float().mean()
        confidence = torch.softmax(logits, dim=1).max(1).values.mean()
        spread = logits.std(1).mean()
        sums["loss"] += loss.item()
        sums["accuracy"] += accuracy.item()
        sums["confidence"] += confidence.item()
        sums["spread"] += spread.item()
    took = time.time() - start
    words = " ".join(f"{name} {value / len(loader):.3f}" for name, value in sums.items())
    print(f"epoch {epoch} {words} {took:.2f}s", flush=True)

model.eval()
with torch.no_grad():
    print("test", (model(x_test).argmax(1) == y_test).float().mean().item())
