"""Load of 40 substations for the next hours, a temporal convolution net in Lightning."""

import argparse
import math
import time
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
STATIONS, PAST, AHEAD = 40, 96, 12


class Loads(Dataset):
    def __init__(self, hours, seed):
        g = torch.Generator().manual_seed(seed)
        t = torch.arange(hours)[None].float()
        size = 0.5 + torch.rand(STATIONS, 1, generator=g)
        shift = 6.3 * torch.rand(STATIONS, 1, generator=g)
        day = torch.sin(2 * math.pi * t / 24 + shift)
        week = torch.sin(2 * math.pi * t / 168 + shift)
        self.load = size * (1 + 0.4 * day + 0.2 * week)
        self.load += 0.08 * torch.randn(STATIONS, hours, generator=g)

    def __len__(self):
        return self.load.shape[1] - PAST - AHEAD

    def __getitem__(self, i):
        return self.load[:, i : i + PAST], self.load[:, i + PAST : i + PAST + AHEAD]


class Block(nn.Module):
    def __init__(self, c, dilation):
        super().__init__()
        self.conv = nn.Conv1d(c, c, 3, padding=dilation, dilation=dilation)
        self.mix = nn.Conv1d(c, c, 1)

    def forward(self, x):
        return x + self.mix(F.gelu(self.conv(x)))


class Forecaster(L.LightningModule):
    def __init__(self, width=64, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.inlet = nn.Conv1d(STATIONS, width, 1)
        self.blocks = nn.Sequential(*[Block(width, 2**k) for k in range(4)])
        self.outlet = nn.Linear(width, STATIONS * AHEAD)

    def forward(self, x):
        h = self.blocks(self.inlet(x))
        return self.outlet(h[..., -1]).view(-1, STATIONS, AHEAD)

    def training_step(self, batch, batch_idx):
        past, ahead = batch
        forecast = self(past)
        loss = F.mse_loss(forecast, ahead)
        self.log("train/loss", loss, on_step=True, on_epoch=True)
        mae = (forecast - ahead).abs().detach().mean((0, 2))
        for k in range(STATIONS):
            self.log(f"train/mae_station_{k:02d}", mae[k], on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        past, ahead = batch
        self.log("val/mae", (self(past) - ahead).abs().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


class Report(L.Callback):
    def on_train_epoch_start(self, trainer, module):
        self.start = time.time()

    def on_train_epoch_end(self, trainer, module):
        told = trainer.callback_metrics
        worst = max(float(v) for k, v in told.items() if "mae_station" in k and "_step" not in k)
        print(
            f"epoch {trainer.current_epoch} loss {float(told['train/loss_epoch']):.4f} "
            f"worst station {worst:.3f} val {float(told['val/mae']):.3f} "
            f"{time.time() - self.start:.2f} s",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    L.seed_everything(5, verbose=False)
    train = DataLoader(Loads(2000, 5), batch_size=args.batch_size, shuffle=True)
    valid = DataLoader(Loads(400, 5), batch_size=64)
    trainer = L.Trainer(
        max_epochs=args.max_epochs,
        accelerator="cpu",
        logger=CSVLogger("data", name="substations", version=0),
        callbacks=[Report()],
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(Forecaster(), train, valid)


if __name__ == "__main__":
    main()
