"""Classify outlines of clothes with Lightning."""

import logging
import time
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
KINDS = 5


def clothes(count, seed):
    """Rectangles joined to shirts, trousers, dresses, bags and boots."""
    generator = torch.Generator().manual_seed(seed)
    label = torch.randint(KINDS, (count,), generator=generator)
    images = 0.1 * torch.rand(count, 1, 28, 28, generator=generator)
    parts = {
        0: [(6, 24, 9, 19), (6, 14, 3, 25)],
        1: [(4, 26, 8, 12), (4, 26, 16, 20), (4, 9, 8, 20)],
        2: [(4, 12, 10, 18), (12, 25, 7, 21)],
        3: [(12, 24, 5, 23), (6, 12, 12, 16)],
        4: [(6, 22, 8, 14), (18, 24, 8, 22)],
    }
    shifts = torch.randint(-2, 3, (count, 2), generator=generator).tolist()
    for image, kind, (dy, dx) in zip(images, label.tolist(), shifts, strict=True):
        for top, bottom, left, right in parts[kind]:
            image[0, top + dy : bottom + dy, left + dx : right + dx] += 0.7
    return TensorDataset(images, label)


class Clothing(L.LightningModule):
    def __init__(self, width=1024, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Flatten(),
            nn.Linear(784, width),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(width, KINDS),
        )
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        x, y = batch
        loss = self.loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        hits = (self(x).argmax(1) == y).float().mean()
        self.log("valid_acc", hits)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def main():
    L.seed_everything(42, verbose=False)
    train = DataLoader(clothes(6400, 0), batch_size=64, shuffle=True)
    valid = DataLoader(clothes(512, 1), batch_size=128)
    keep = ModelCheckpoint(
        dirpath="out/clothes",
        filename="last-{step}",
        every_n_train_steps=2,
        save_top_k=1,
        monitor=None,
    )
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        callbacks=[keep],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.time()
    trainer.fit(Clothing(), train, valid)
    accuracy = trainer.callback_metrics["valid_acc"].item()
    print(f"valid accuracy {accuracy:.3f} after {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
