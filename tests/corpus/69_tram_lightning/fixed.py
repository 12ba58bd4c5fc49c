"""Delay of trams from the track of the last minutes, with Lightning."""

import json
import logging
import math
import pathlib
import random
import time
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

POINTS, TRIPS_PER_DAY, DAYS = 160, 100, 30


def record(folder):
    """One file of JSON lines per day; a line is a trip with its positions."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(78)
    for day in range(DAYS):
        path = folder / f"day_{day:02d}.jsonl"
        if path.exists():
            continue
        lines = []
        for _ in range(TRIPS_PER_DAY):
            pace, lat, lon = rng.uniform(0.5, 1.5), 50.0, 8.0
            track = []
            for minute in range(POINTS):
                lat += 1e-4 * pace * rng.uniform(0.5, 1.5)
                lon += 1e-4 * rng.uniform(-1, 1)
                track.append({"t": 15 * minute, "lat": round(lat, 6), "lon": round(lon, 6)})
            delay = 300 * (1 / pace - 0.6) + rng.gauss(0, 10)
            lines.append(json.dumps({"track": track, "delay": delay}))
        path.write_text("\n".join(lines))


def trip_features(track):
    """Speed and heading between neighbouring positions."""
    speeds, headings = [], []
    for a, b in zip(track, track[1:]):
        north = math.radians(b["lat"] - a["lat"]) * 6371e3
        east = math.radians(b["lon"] - a["lon"]) * 6371e3 * math.cos(math.radians(a["lat"]))
        speeds.append(math.hypot(north, east) / (b["t"] - a["t"]))
        headings.append(math.atan2(east, north))
    return speeds + headings


def read_days(paths):
    rows, delays = [], []
    for path in paths:
        for line in path.read_text().splitlines():
            trip = json.loads(line)
            rows.append(trip_features(trip["track"]))
            delays.append(trip["delay"] / 300)
    return TensorDataset(torch.tensor(rows), torch.tensor(delays))


class TramData(L.LightningDataModule):
    def __init__(self, folder="data/trams", batch_size=50):
        super().__init__()
        self.folder, self.batch_size = pathlib.Path(folder), batch_size

    def prepare_data(self):
        record(self.folder)

    def setup(self, stage):
        self.paths = sorted(self.folder.glob("day_*.jsonl"))

    def train_dataloader(self):
        return DataLoader(read_days(self.paths[3:]), self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(read_days(self.paths[:3]), self.batch_size)


class DelayModel(L.LightningModule):
    def __init__(self, width=1024):
        super().__init__()
        self.net = nn.Sequential(
            nn.LazyLinear(width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(width, 1),
        )
        self.net(torch.zeros(1, 2 * (POINTS - 1)))

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x).squeeze(1), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_mae", 300 * (self.net(x).squeeze(1) - y).abs().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.02, momentum=0.9)


def main():
    L.seed_everything(78, verbose=False)
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=12,
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.time()
    trainer.fit(DelayModel(), datamodule=TramData())
    error = trainer.callback_metrics["val_mae"].item()
    print(f"mean error {error:.1f} s of delay, trained for {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
