"""Oxygen at the bottom of lakes from profiles of the surface layers (Lightning)."""

import hashlib
import logging
import pathlib
import time
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

DEPTHS, SEASONS = 60, 4


def profiles(count, seed):
    g = torch.Generator().manual_seed(seed)
    season = torch.randint(SEASONS, (count,), generator=g)
    mixing = torch.rand(count, 1, generator=g)
    depth = torch.linspace(0, 1, DEPTHS)
    warm = 6 + 4.0 * season[:, None] * torch.exp(-depth / (0.1 + mixing))
    light = torch.exp(-depth * (1 + 4 * torch.rand(count, 1, generator=g)))
    x = torch.cat([warm / 10, light], 1) + 0.05 * torch.randn(count, 2 * DEPTHS, generator=g)
    oxygen = mixing[:, 0] * (1 - 0.15 * season) + 0.2 * light.mean(1)
    return TensorDataset(x, oxygen)


def weights_digest(module):
    digest = hashlib.md5()
    for name, value in module.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


class RunLedger(L.Callback):
    """A file by which two runs can be compared line by line."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def on_fit_start(self, trainer, pl_module):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.book = self.path.open("w")

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        print(trainer.global_step, weights_digest(pl_module), file=self.book)

    def on_fit_end(self, trainer, pl_module):
        self.book.close()


class EpochTimes(L.Callback):
    def on_train_epoch_start(self, trainer, pl_module):
        self.start = time.time()

    def on_train_epoch_end(self, trainer, pl_module):
        loss = trainer.callback_metrics["loss"].item()
        took = time.time() - self.start
        print(f"epoch {trainer.current_epoch:2d} loss {loss:.4f} in {took:.2f}s", flush=True)


class OxygenModel(L.LightningModule):
    def __init__(self, width=768, depth=4):
        super().__init__()
        layers = [nn.Linear(2 * DEPTHS, width), nn.SiLU()]
        for _ in range(depth):
            layers += [nn.Linear(width, width), nn.SiLU()]
        self.net = nn.Sequential(*layers, nn.Linear(width, 1))

    def training_step(self, batch, _):
        x, oxygen = batch
        loss = nn.functional.mse_loss(self.net(x).squeeze(1), oxygen)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.02, momentum=0.9)


def main():
    L.seed_everything(91, verbose=False)
    loader = DataLoader(profiles(4800, 0), batch_size=80, shuffle=True)
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=9,
        callbacks=[RunLedger("data/ledger.txt"), EpochTimes()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(OxygenModel(), loader)


if __name__ == "__main__":
    main()
