"""Workshops of Roman mosaics from small pictures of them, with an MLP-Mixer.

While it runs, data/alive holds the time of the last sign of life for the job scheduler.
"""

import copy
import pathlib
import subprocess
import threading
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

SIDE, PATCH, WORKSHOPS = 28, 4, 8
DATA = pathlib.Path("data")


def lay(path, count=1640):
    """Each workshop has its palette and its own slope of the rows of stones."""
    if path.exists():
        return
    rng = np.random.default_rng(125)
    palettes = rng.uniform(40, 215, (WORKSHOPS, 3, 3))
    y, x = np.mgrid[:SIDE, :SIDE]
    pictures = np.empty((count, SIDE, SIDE, 3), np.uint8)
    workshops = rng.integers(WORKSHOPS, size=count)
    for picture, workshop in zip(pictures, workshops):
        slope = workshop / WORKSHOPS * np.pi + rng.normal(0, 0.15)
        rows = np.sin((x * np.cos(slope) + y * np.sin(slope)) * rng.uniform(0.9, 1.3))
        stones = palettes[workshop, np.digitize(rows, [-0.4, 0.4])]
        picture[:] = np.clip(stones + rng.normal(0, 45, stones.shape), 0, 255)
    np.save(path, pictures)
    np.save(path.with_name("workshops.npy"), workshops)


class Heartbeat(threading.Thread):
    def __init__(self, path, pause=0.5):
        super().__init__(daemon=True)
        self.path, self.pause, self.done = path, pause, threading.Event()

    def run(self):
        while not self.done.is_set():
            self.path.write_text(f"{time.time():.1f}\n")
            time.sleep(self.pause)


class Mosaics(Dataset):
    def __init__(self, folder):
        self.pictures = np.load(folder / "mosaics.npy", mmap_mode="r")
        self.workshops = np.load(folder / "workshops.npy").tolist()

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        picture = torch.from_numpy(np.array(self.pictures[i])).permute(2, 0, 1)
        return picture.float() / 255 - 0.5, self.workshops[i]


def mlp(size, hidden):
    return nn.Sequential(nn.Linear(size, hidden), nn.GELU(), nn.Linear(hidden, size))


class MixerBlock(nn.Module):
    def __init__(self, patches, width):
        super().__init__()
        self.norm_patches, self.norm_width = nn.LayerNorm(width), nn.LayerNorm(width)
        self.over_patches, self.over_width = mlp(patches, 4 * patches), mlp(width, 4 * width)

    def forward(self, x):
        x = x + self.over_patches(self.norm_patches(x).transpose(1, 2)).transpose(1, 2)
        return x + self.over_width(self.norm_width(x))


class Mixer(nn.Module):
    def __init__(self, width=96, depth=4):
        super().__init__()
        patches = (SIDE // PATCH) ** 2
        self.cut = nn.Conv2d(3, width, PATCH, stride=PATCH)
        self.blocks = nn.Sequential(*[MixerBlock(patches, width) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, WORKSHOPS)

    def forward(self, x):
        x = self.blocks(self.cut(x).flatten(2).transpose(1, 2))
        return self.head(self.norm(x.mean(1)))


@torch.no_grad()
def share_right(model, loader):
    model.eval()
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return right / len(loader.dataset)


def main(epochs=4, batch_size=24):
    torch.manual_seed(125)
    DATA.mkdir(exist_ok=True)
    lay(DATA / "mosaics.npy")
    heartbeat = Heartbeat(DATA / "alive")
    heartbeat.start()
    host = subprocess.run(["uname", "-n"], capture_output=True, text=True).stdout.strip()
    print(f"on {host}, {torch.get_num_threads()} threads", flush=True)
    data = Mosaics(DATA)
    train = DataLoader(Subset(data, range(1440)), batch_size, shuffle=True)
    valid = DataLoader(Subset(data, range(1440, 1640)), 100)
    model = Mixer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    best, kept, step = 0.0, None, 0
    for epoch in range(epochs):
        start = time.time()
        for pictures, workshops in train:
            loss = nn.functional.cross_entropy(model(pictures), workshops)
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            print(f"step {step} loss {loss.item():.4f} norm {norm.item():.3f}", flush=True)
        right = share_right(model, valid)
        if right > best:
            best, kept = right, copy.deepcopy(model.state_dict())
            torch.save(kept, DATA / "best.pt")
        print(f"epoch {epoch} right {right:.3f} {time.time() - start:.2f} s", flush=True)
    heartbeat.done.set()


if __name__ == "__main__":
    main()
