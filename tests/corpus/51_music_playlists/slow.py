"""Bayesian personalised ranking on playlists."""

import random
import time

import numpy as np
import torch
from torch import nn

USERS, SONGS = 700, 9000


def playlists(seed=54):
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(USERS):
        length = int(rng.integers(100, 500))
        centre = rng.integers(SONGS)
        songs = (centre + rng.normal(0, 900, length).astype(int)) % SONGS
        out.append(list(dict.fromkeys(songs.tolist())))
    return out


def resample(lists):
    """One (user, song, other song) per entry of every playlist, in random order."""
    triples = []
    for user, songs in enumerate(lists):
        for song in songs:
            negative = random.randrange(SONGS)
            while negative in songs:
                negative = random.randrange(SONGS)
            triples.append((user, song, negative))
    random.shuffle(triples)
    return torch.tensor(triples)


class BPR(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.user = nn.Embedding(USERS, width)
        self.song = nn.Embedding(SONGS, width)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.song.weight, std=0.1)

    def forward(self, user, song, other):
        u = self.user(user)
        return (u * (self.song(song) - self.song(other))).sum(1)


def main(epochs=6, batch_size=2048):
    torch.manual_seed(54)
    random.seed(54)
    np.random.seed(54)
    lists = playlists()
    model = BPR()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    start = time.time()
    for epoch in range(epochs):
        triples = resample(lists)
        total, steps = 0.0, 0
        for batch in triples.split(batch_size):
            difference = model(*batch.T)
            loss = -nn.functional.logsigmoid(difference).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, steps = total + loss.item(), steps + 1
        print(f"epoch {epoch}: {steps} steps, {total / steps:.4f}, {time.time() - start:.1f} s")
    torch.save(model.state_dict(), "playlists.pt")


if __name__ == "__main__":
    main()
