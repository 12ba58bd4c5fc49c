"""Lightning: forward and backward run in a closure inside `optimizer.step`; data made in memory.

Validation after each epoch, with the sanity check before the first step, and a checkpoint at the
end of each epoch. The clock hangs in hooks of the module; what runs inside `optimizer.step` and is
neither forward nor backward is booked on the optimizer. Planted: sleep in `__getitem__` (per
sample), forward, backward, optimizer, host code (`on_train_batch_end`) and in the checkpoint.
"""

import os
import time
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, default_collate

import script_log

log = None


class Points(Dataset):
    def __init__(self, count, seed, ms):
        self.x = torch.randn(count, 16, generator=torch.Generator().manual_seed(seed))
        self.ms = ms

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return self.x[i], int(self.x[i].sum() > 0)


class TrainPoints(Points):
    def __getitems__(self, indices):
        log.lap("other")
        return [self[i] for i in indices]


def collate(samples):
    batch = default_collate(samples)
    log.lap("data_wait")
    return batch


class SlowBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ms):
        ctx.ms = ms
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        time.sleep(ctx.ms / 1000)
        return grad, None


class Net(nn.Module):
    def __init__(self, plant):
        super().__init__()
        self.plant = plant
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        time.sleep(self.plant["forward"] / 1000)
        return SlowBackward.apply(self.layers(x), self.plant["backward"])


class SlowAdam(torch.optim.Adam):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


class Slow:
    ms = 0.0

    def __reduce__(self):
        time.sleep(self.ms / 1000)
        return (Slow, ())


class Lit(L.LightningModule):
    def __init__(self, plant):
        super().__init__()
        self.plant = plant
        self.net = Net(plant)
        self.seen = []
        self.scores = []

    def training_step(self, batch, _):
        log.lap("optimizer")
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        log.lap("forward")
        self.log("loss", loss)
        return loss

    def on_before_backward(self, loss):
        log.lap("optimizer")

    def on_after_backward(self):
        log.lap("backward")

    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure=None):
        log.lap("other")
        super().optimizer_step(epoch, batch_idx, optimizer, optimizer_closure)
        log.lap("optimizer")
        log.end_step()

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.seen.append(outputs["loss"].item())
        time.sleep(self.plant["host"] / 1000)
        log.lap("other")

    def on_validation_start(self):
        log.lap("other" if log.steps else "set_up")

    def validation_step(self, batch, _):
        x, y = batch
        self.scores.append(nn.functional.cross_entropy(self.net(x), y).item())

    def on_validation_end(self):
        log.lap("evaluation")

    def on_train_start(self):
        log.lap("set_up")

    def on_train_epoch_end(self):
        log.lap("epoch_edge")
        self.trainer.save_checkpoint(os.path.join(self.trainer.default_root_dir, "last.ckpt"))
        log.lap("checkpoint")

    def on_save_checkpoint(self, checkpoint):
        checkpoint["slow"] = Slow()

    def configure_optimizers(self):
        return SlowAdam(self.parameters(), lr=1e-2)


def main():
    global log
    args = script_log.arguments(
        __doc__, getitem=0.6, forward=5, backward=4, optimizer=3, host=3, checkpoint=120
    ).parse_args()
    plant = args.plant
    torch.set_num_threads(1)
    L.seed_everything(18)
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    SlowAdam.ms, Slow.ms = plant["optimizer"], plant["checkpoint"]
    log = script_log.Log("lightning", args.log)
    module = Lit(plant)
    train = DataLoader(
        TrainPoints(320, 1, plant["getitem"]), batch_size=8, shuffle=True, collate_fn=collate
    )
    valid = DataLoader(Points(96, 2, plant["getitem"]), batch_size=16)
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=script_log.folder(args.out),
    )
    trainer.fit(module, train, valid)
    print(f"{len(module.seen)} steps, loss {module.seen[-1]:.4f}, valid {module.scores[-1]:.4f}")
    log.finish(
        module.parameters(),
        module.seen,
        scores=module.scores,
        evaluation_batches=3 * len(valid),
        sanity_batches=len(module.scores) - 3 * len(valid),
        expected_steps=120,
        workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
    )


if __name__ == "__main__":
    main()
