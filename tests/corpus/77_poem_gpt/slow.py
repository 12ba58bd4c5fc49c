"""Character model of rhymed verse; writes a line of its own after each epoch."""

import copy
import gc
import random
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CONTEXT, WIDTH, LAYERS, HEADS = 64, 160, 3, 4


def verses(lines, seed=86):
    rng = random.Random(seed)
    ends = "night light bright sight / day way say play / sea free tree be / rain pain lane again"
    rhymes = [group.split() for group in ends.split(" / ")]
    starts = "the moon, a bird, my heart, the wind, her voice, an old song".split(", ")
    verbs = "sings of, dreams of, waits for, turns to, forgets".split(", ")
    out = []
    for _ in range(lines // 2):
        for word in rng.sample(rng.choice(rhymes), 2):
            out.append(f"{rng.choice(starts)} {rng.choice(verbs)} the {word}")
    return "\n".join(out)


class Poet(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.letter = nn.Embedding(letters, WIDTH)
        self.place = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                WIDTH, HEADS, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(LAYERS)
        )
        self.out = nn.Linear(WIDTH, letters)
        mask = nn.Transformer.generate_square_subsequent_mask(CONTEXT)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        length = x.shape[1]
        x = self.letter(x) + self.place[:length]
        for block in self.blocks:
            x = block(x, src_mask=self.mask[:length, :length], is_causal=True)
        return self.out(x)


@torch.no_grad()
def write(model, letters, index, first="the ", count=24):
    model.eval()
    text = torch.tensor([[index[c] for c in first]])
    for _ in range(count):
        probability = model(text[:, -CONTEXT:])[0, -1].softmax(0)
        text = torch.cat([text, torch.multinomial(probability, 1)[None]], 1)
    model.train()
    return "".join(letters[i] for i in text[0].tolist())


def pieces(text, index, seed):
    ids = torch.tensor([index[c] for c in text])
    offset = seed % CONTEXT
    rows = ids[offset:].unfold(0, CONTEXT + 1, CONTEXT)
    return TensorDataset(rows[:, :-1], rows[:, 1:])


def main(epochs=6):
    torch.manual_seed(86)
    text = verses(1400)
    letters = sorted(set(text))
    index = {c: i for i, c in enumerate(letters)}
    model = Poet(len(letters))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    best, best_state = float("inf"), None
    for epoch in range(epochs):
        start, total = time.time(), 0.0
        loader = DataLoader(pieces(text, index, 7 * epoch), batch_size=24, shuffle=True)
        for x, y in loader:
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        mean = total / len(loader)
        if mean < best:
            best, best_state = mean, copy.deepcopy(model.state_dict())
            torch.save(best_state, "poet.pt")
        gc.collect()
        line = write(model, letters, index).replace("\n", " / ")
        print(f"epoch {epoch} {mean:.3f} {time.time() - start:.1f}s | {line}", flush=True)


if __name__ == "__main__":
    main()
