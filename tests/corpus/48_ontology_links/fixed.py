"""Knowledge graph completion (TransE) on triples held in memory."""

import gc
import random
import time
from dataclasses import dataclass

import torch
from torch import nn

ENTITIES, RELATIONS = 8000, 20


@dataclass
class Triple:
    head: int
    relation: int
    tail: int
    sources: list


class Graph:
    def __init__(self, count, seed=49):
        rng = random.Random(seed)
        self.triples = []
        self.known = {}
        for _ in range(count):
            head, relation = rng.randrange(ENTITIES), rng.randrange(RELATIONS)
            tail = (head * (relation + 3) + rng.randrange(5)) % ENTITIES
            self.triples.append(Triple(head, relation, tail, [rng.randrange(100)]))
            self.known.setdefault((head, relation), set()).add(tail)

    def batch(self, size, rng):
        rows = []
        for triple in rng.sample(self.triples, size):
            wrong = rng.randrange(ENTITIES)
            while wrong in self.known[triple.head, triple.relation]:
                wrong = rng.randrange(ENTITIES)
            rows.append((triple.head, triple.relation, triple.tail, wrong))
        return torch.tensor(rows).T


class TransE(nn.Module):
    def __init__(self, width=64, margin=1.0):
        super().__init__()
        self.margin = margin
        self.entity = nn.Embedding(ENTITIES, width, sparse=True)
        self.relation = nn.Embedding(RELATIONS, width, sparse=True)
        nn.init.xavier_uniform_(self.entity.weight)
        nn.init.xavier_uniform_(self.relation.weight)

    def distance(self, head, relation, tail):
        return (self.entity(head) + self.relation(relation) - self.entity(tail)).norm(dim=1)

    def forward(self, head, relation, tail, wrong):
        good = self.distance(head, relation, tail)
        bad = self.distance(head, relation, wrong)
        return torch.relu(self.margin + good - bad).mean()


def main(steps=300, batch_size=1024):
    torch.manual_seed(49)
    rng = random.Random(50)
    graph = Graph(130_000)
    print(f"{len(graph.triples)} triples, {len(graph.known)} heads with relation", flush=True)
    model = TransE()
    optimizer = torch.optim.SparseAdam(model.parameters(), lr=5e-3)
    start, total = time.time(), 0.0
    for step in range(1, steps + 1):
        loss = model(*graph.batch(batch_size, rng))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if step % 50 == 0:
            print(f"step {step} margin loss {total / 50:.4f}", flush=True)
            total = 0.0
            gc.collect()
    print(f"{time.time() - start:.1f} s for {steps} steps")


if __name__ == "__main__":
    main()
