"""Transcribe violin phrases: which note sounds in each frame."""

import io
import lzma
import pathlib
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NOTES, BINS, FRAMES = 30, 64, 60


class Checkpoints:
    """Keeps the newest states of a run; old ones are removed."""

    def __init__(self, folder, keep=2):
        self.folder, self.keep = pathlib.Path(folder), keep
        self.folder.mkdir(parents=True, exist_ok=True)

    def save(self, epoch, **objects):
        buffer = io.BytesIO()
        state = {name: thing.state_dict() for name, thing in objects.items()}
        torch.save({"epoch": epoch, **state}, buffer)
        path = self.folder / f"epoch_{epoch:03d}.pt.xz"
        path.write_bytes(lzma.compress(buffer.getvalue(), preset=9))
        for old in sorted(self.folder.glob("epoch_*"))[: -self.keep]:
            old.unlink()
        return path


def phrases(count, seed):
    """Random walks over the notes; a note lights its partials in the spectrum."""
    g = torch.Generator().manual_seed(seed)
    moves = torch.randint(-2, 3, (count, FRAMES), generator=g)
    stays = torch.rand(count, FRAMES, generator=g) < 0.7
    notes = (15 + moves.masked_fill(stays, 0).cumsum(1)).clamp(0, NOTES - 1)
    bins = torch.arange(BINS).float()
    spectrum = torch.zeros(count, FRAMES, BINS)
    for partial, offset in enumerate((0, 12, 19, 24)):
        place = notes[..., None] + offset
        spectrum += torch.exp(-((bins - place) ** 2) / 0.8) / (1 + partial)
    spectrum += 0.3 * torch.randn(spectrum.shape, generator=g)
    return TensorDataset(spectrum, notes)


class Transcriber(nn.Module):
    def __init__(self, hidden=192):
        super().__init__()
        self.gru = nn.GRU(BINS, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, NOTES)

    def forward(self, spectrum):
        return self.out(self.gru(spectrum)[0])


@torch.no_grad()
def frame_accuracy(model, dataset):
    spectrum, notes = dataset.tensors
    return (model(spectrum).argmax(-1) == notes).float().mean().item()


def main(epochs=8, batch_size=32):
    torch.manual_seed(82)
    train, valid = phrases(600, 0), phrases(64, 1)
    loader = DataLoader(train, batch_size=batch_size, shuffle=True)
    model = Transcriber()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(loader))
    checkpoints = Checkpoints("out/violin")
    begin = time.time()
    for epoch in range(epochs):
        for spectrum, notes in loader:
            loss = nn.functional.cross_entropy(model(spectrum).flatten(0, 1), notes.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        path = checkpoints.save(epoch, model=model, optimizer=optimizer, scheduler=scheduler)
        accuracy = frame_accuracy(model, valid)
        print(f"epoch {epoch} loss {loss.item():.3f} frames {accuracy:.3f} -> {path}", flush=True)
    print(f"total {time.time() - begin:.1f} s")


if __name__ == "__main__":
    main()
