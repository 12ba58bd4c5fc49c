"""Rate reviews with two processes.

torchrun --nproc-per-node 2 slow.py
"""

import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

VOCAB, BATCH, EPOCHS = 2000, 16, 3


def reviews(count, seed=39):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        length = int(np.clip(rng.lognormal(3.4, 0.8), 6, 200))
        words = rng.integers(1, VOCAB, length)
        rows.append((words, float((words % 5 == 0).mean() * 5)))
    return sorted(rows, key=lambda row: len(row[0]))


def collate(rows):
    width = max(len(words) for words, _ in rows)
    tokens = np.zeros((len(rows), width), dtype=np.int64)
    for line, (words, _) in zip(tokens, rows, strict=True):
        line[: len(words)] = words
    return torch.from_numpy(tokens), torch.tensor([stars for _, stars in rows])


class Rater(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width, padding_idx=0)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, batch_first=True) for _ in range(2)
        )
        self.out = nn.Linear(width, 1)

    def forward(self, tokens):
        empty = tokens == 0
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=empty)
        x = x.masked_fill(empty[..., None], 0).sum(1) / (~empty).sum(1, keepdim=True)
        return self.out(x).squeeze(1)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    rows = reviews(2400)
    batches = [rows[i : i + BATCH] for i in range(0, len(rows), BATCH)]
    each = len(batches) // world
    mine = batches[rank * each : (rank + 1) * each]
    model = DistributedDataParallel(Rater())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    began = time.time()
    for epoch in range(EPOCHS):
        order = np.random.default_rng(epoch).permutation(each)
        losses = []
        for i in order:
            tokens, stars = collate(mine[i])
            prediction = model(tokens)
            loss = nn.functional.mse_loss(prediction, stars)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        mean = torch.tensor(np.mean(losses))
        dist.all_reduce(mean)
        if rank == 0:
            print(f"epoch {epoch} loss {mean.item() / world:.4f}", flush=True)
    if rank == 0:
        print(f"trained in {time.time() - began:.1f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
