"""Language model on a memory-mapped file of tokens: no DataLoader, `get_batch` and a while loop.

The loss is estimated every 40 iterations with `model.eval()` under no_grad on both halves of the
file, and a checkpoint follows. Planted: sleep in `get_batch` (the batch is fetched right after
the backward, as this style does), in forward, in the estimate (its forwards) and in host code.
"""

import os
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import script_log

args = script_log.arguments(
    __doc__, get_batch=6, forward=5, backward=4, host=3, checkpoint=80
).parse_args()
plant = args.plant
out_dir = script_log.folder(args.out)
torch.set_num_threads(1)
torch.manual_seed(1337)

block_size, batch_size, vocab = 16, 8, 64
max_iters, eval_interval, eval_iters = 160, 40, 8
tokens = np.random.default_rng(0).integers(0, vocab, 200_000).astype(np.uint16)
tokens.tofile(os.path.join(out_dir, "train.bin"))
log = script_log.Log("memmap", args.log)
batches = 0


def get_batch(split):
    global batches
    batches += 1
    time.sleep(plant["get_batch"] / 1000)
    data = np.memmap(os.path.join(out_dir, "train.bin"), dtype=np.uint16, mode="r")
    data = data[:180_000] if split == "train" else data[180_000:]
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([torch.from_numpy(data[i : i + block_size].astype(np.int64)) for i in ix])
    y = torch.stack(
        [torch.from_numpy(data[i + 1 : i + 1 + block_size].astype(np.int64)) for i in ix]
    )
    return x, y


class SlowBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        time.sleep(plant["backward"] / 1000)
        return grad


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(vocab, 32)
        self.block = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.1, batch_first=True)
        self.lm_head = nn.Linear(32, vocab)

    def forward(self, idx, targets):
        time.sleep(plant["forward"] / 1000)
        mask = nn.Transformer.generate_square_subsequent_mask(idx.shape[1])
        x = SlowBackward.apply(self.block(self.wte(idx), src_mask=mask, is_causal=True))
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.view(-1, vocab), targets.view(-1))


@torch.no_grad()
def estimate_loss():
    out = {}
    model.eval()
    for split in ["train", "val"]:
        found = torch.zeros(eval_iters)
        for k in range(eval_iters):
            X, Y = get_batch(split)
            _, loss = model(X, Y)
            found[k] = loss.item()
        out[split] = found.mean()
    model.train()
    return out


class Slow:
    """Part of a checkpoint that takes long to be written."""

    def __reduce__(self):
        time.sleep(plant["checkpoint"] / 1000)
        return (Slow, ())


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses, estimates = [], []
iter_num = 0
log.start()
X, Y = get_batch("train")
log.lap("data_wait")
t0 = time.time()
while iter_num < max_iters:
    if iter_num % eval_interval == 0 and iter_num > 0:
        log.lap("other")
        found = estimate_loss()
        log.lap("evaluation")
        estimates.append(found["val"].item())
        print(f"step {iter_num}: train loss {found['train']:.4f}, val loss {found['val']:.4f}")
        log.lap("logging")
        checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**checkpoint, "slow": Slow()}, os.path.join(out_dir, "ckpt.pt"))
        log.lap("checkpoint")
    log.lap("other")
    logits, loss = model(X, Y)
    log.lap("forward")
    X, Y = get_batch("train")
    log.lap("data_wait")
    loss.backward()
    log.lap("backward")
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    log.lap("other")
    optimizer.step()
    log.lap("optimizer")
    log.end_step()
    optimizer.zero_grad(set_to_none=True)
    losses.append(loss.item())
    log.lap("other")
    if iter_num % 20 == 0:
        dt, t0 = time.time() - t0, time.time()
        print(f"iter {iter_num}: loss {losses[-1]:.4f}, time {dt * 1000:.2f}ms")
    log.lap("logging")
    time.sleep(plant["host"] / 1000)
    log.lap("other")
    iter_num += 1

log.finish(model.parameters(), losses, batches=batches, estimates=estimates)
