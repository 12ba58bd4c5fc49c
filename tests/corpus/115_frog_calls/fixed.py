"""Frog species from calls of different length; clips of like length share a batch."""

import pathlib
import random
import time
import wave

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

RATE, FRAME, HOP, SPECIES = 16000, 512, 128, 8
FOLDER = pathlib.Path("data/frogs")


def record(count=320):
    rng = np.random.default_rng(21)
    FOLDER.mkdir(parents=True)
    for i in range(count):
        species = i % SPECIES
        t = np.arange(int(RATE * rng.uniform(0.8, 4.0))) / RATE
        pulse = np.maximum(0, np.sin(2 * np.pi * (3 + species % 4) * t)) ** 3
        tone = np.sin(2 * np.pi * (700 + 350 * (species // 2) + rng.normal(0, 30)) * t)
        sound = 0.4 * pulse * tone + rng.normal(0, 0.15, len(t))
        with wave.open(str(FOLDER / f"{i:04d}_{species}.wav"), "wb") as f:
            f.setnchannels(1)
            f.setsampwidth(2)
            f.setframerate(RATE)
            f.writeframes((np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes())


def mel_bank(bands=40):
    top = 2595 * np.log10(1 + RATE / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, top, bands + 2) / 2595) - 1)
    f = np.fft.rfftfreq(FRAME, 1 / RATE)
    up = (f - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - f) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(up, down)).T.astype(np.float32)


class FrogCalls(Dataset):
    def __init__(self, paths):
        self.paths, self.bank, self.window = paths, mel_bank(), np.hanning(FRAME)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with wave.open(str(self.paths[i]), "rb") as f:
            sound = np.frombuffer(f.readframes(f.getnframes()), "<i2") / 32768
        frames = np.lib.stride_tricks.sliding_window_view(sound, FRAME)[::HOP]
        power = np.abs(np.fft.rfft(frames * self.window, axis=1)) ** 2
        mel = np.log(power.astype(np.float32) @ self.bank + 1e-4)
        return torch.from_numpy(mel[::4].copy()), int(self.paths[i].stem.split("_")[1])

    def frames(self, i):
        with wave.open(str(self.paths[i]), "rb") as f:
            return -(-(1 + (f.getnframes() - FRAME) // HOP) // 4)


class LengthBatches(Sampler):
    """Batches of neighbours in length (with some jitter), in random order."""

    def __init__(self, data, size, jitter=20):
        self.data, self.size, self.jitter = data, size, jitter

    def __len__(self):
        return len(self.data) // self.size

    def __iter__(self):
        length = [
            self.data.frames(i) + random.uniform(0, self.jitter) for i in range(len(self.data))
        ]
        order = sorted(range(len(self.data)), key=length.__getitem__)
        batches = [
            order[k : k + self.size] for k in range(0, len(order) - self.size + 1, self.size)
        ]
        random.shuffle(batches)
        return iter(batches)


def collate(samples):
    lengths = torch.tensor([len(mel) for mel, _ in samples])
    return (
        pad_sequence([mel for mel, _ in samples], batch_first=True),
        lengths,
        torch.tensor([s for _, s in samples]),
    )


class CallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(40)
        self.gru = nn.GRU(40, 24, batch_first=True)
        self.out = nn.Linear(24, SPECIES)

    def forward(self, mel, lengths):
        packed = pack_padded_sequence(
            self.norm(mel), lengths, batch_first=True, enforce_sorted=False
        )
        return self.out(self.gru(packed)[1][0])


def main(epochs=6):
    random.seed(21)
    torch.manual_seed(21)
    if not FOLDER.exists():
        record()
    data = FrogCalls(sorted(FOLDER.glob("*.wav")))
    loader = DataLoader(data, batch_sampler=LengthBatches(data, 16), collate_fn=collate)
    net = CallNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(epochs):
        start, right, count = time.time(), 0, 0
        for mel, lengths, species in loader:
            scores = net(mel, lengths)
            loss = nn.functional.cross_entropy(scores, species)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            right += (scores.argmax(1) == species).sum().item()
            count += len(species)
        print(
            f"epoch {epoch + 1} right {right / count:.3f} after {time.time() - start:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
