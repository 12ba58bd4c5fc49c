"""How late a parcel will be, from the events of its way: a GRU on sequences of different length."""

import argparse
import random
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Sampler

EVENTS = ["accepted", "sorted", "loaded", "departed", "arrived", "held", "customs", "delivered"]


def parcels(count, seed):
    rng = random.Random(seed)
    g = torch.Generator().manual_seed(seed)
    out = []
    for _ in range(count):
        n = rng.randint(30, 150)
        event = torch.randint(len(EVENTS), (n,), generator=g)
        hours = -3 * torch.rand(n, generator=g).log()
        late = 0.1 * hours[event == 5].sum() + 0.05 * hours[event == 6].sum()
        out.append((event, hours.log1p(), late))
    return out


class Buckets(Sampler):
    """Batches of parcels with about as many events, in random rank."""

    def __init__(self, lengths, size):
        self.lengths, self.size = lengths, size

    def __len__(self):
        return len(self.lengths) // self.size

    def __iter__(self):
        rank = sorted(range(len(self.lengths)), key=lambda i: self.lengths[i] + random.random() * 8)
        batches = [rank[k * self.size : (k + 1) * self.size] for k in range(len(self))]
        random.shuffle(batches)
        return iter(batches)


def collate(rows):
    events, hours, late = zip(*rows)
    lengths = torch.tensor([len(e) for e in events])
    return (
        pad_sequence(list(events), batch_first=True),
        pad_sequence(list(hours), batch_first=True),
        lengths,
        torch.stack(late),
    )


class Lateness(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.embed = nn.Embedding(len(EVENTS), 31)
        self.gru = nn.GRU(32, hidden, num_layers=2, batch_first=True)
        self.out = nn.Sequential(nn.Linear(hidden, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, event, hours, lengths):
        x = torch.cat([self.embed(event), hours[..., None]], -1)
        out, _ = self.gru(x)
        last = out[torch.arange(len(out)), lengths - 1]
        return self.out(last).squeeze(-1)


def evaluate(net, loader):
    net.eval()
    off, seen = 0.0, 0
    with torch.inference_mode():
        for event, hours, lengths, late in loader:
            off += (net(event, hours, lengths) - late).abs().sum().item()
            seen += len(late)
    net.train()
    return off / seen


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--parcels", type=int, default=960)
    args = parser.parse_args()
    random.seed(6)
    torch.manual_seed(6)
    train, test = parcels(args.parcels, 6), parcels(160, 7)
    buckets = Buckets([len(p[0]) for p in train], args.batch)
    train_loader = DataLoader(train, batch_sampler=buckets, collate_fn=collate)
    test_loader = DataLoader(test, batch_size=80, collate_fn=collate)
    net = Lateness()
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    history = []
    for epoch in range(args.epochs):
        start = time.time()
        for step, (event, hours, lengths, late) in enumerate(train_loader):
            loss = nn.functional.smooth_l1_loss(net(event, hours, lengths), late)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            history.append(loss.item())
            if step % 10 == 0:
                print(f"epoch {epoch} step {step} loss {history[-1]:.4f}", flush=True)
        print(
            f"epoch {epoch} mean {sum(history[-len(buckets):]) / len(buckets):.4f} "
            f"off by {evaluate(net, test_loader):.3f} h, {time.time() - start:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
