"""Cuisine of a restaurant from its menu: a small transformer over words.

Menus are cut or filled up to 64 words. After every 20 steps a look at 64 held-out menus.
"""

import gc
import json
import pathlib
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

KITCHENS, WORDS, LENGTH, PAD = 8, 900, 64, 0


def menus(count, seed):
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        kitchen = rng.randrange(KITCHENS)
        words = []
        for _ in range(rng.randint(57, 70)):
            own = rng.random() < 0.12
            words.append(
                rng.randrange(1 + 60 * kitchen, 61 + 60 * kitchen)
                if own
                else rng.randrange(481, WORDS)
            )
        rows.append((words, kitchen))
    return rows


class Menus(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        words, kitchen = self.rows[i]
        words = (words + [PAD] * LENGTH)[:LENGTH]
        return torch.tensor(words), kitchen


class MenuModel(nn.Module):
    def __init__(self, width=128, depth=3):
        super().__init__()
        self.word = nn.Embedding(WORDS, width, padding_idx=PAD)
        self.place = nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.1, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.out = nn.Linear(width, KITCHENS)

    def forward(self, words):
        empty = words == PAD
        x = self.word(words) + self.place(torch.arange(LENGTH))
        x = self.layers(x, src_key_padding_mask=empty)
        x = x.masked_fill(empty[:, :, None], 0).sum(1) / (~empty).sum(1, keepdim=True)
        return self.out(x)


@torch.no_grad()
def look(model, batch):
    model.eval()
    words, kitchen = batch
    right = (model(words).argmax(1) == kitchen).float().mean().item()
    model.train()
    return right


def main(epochs=3, batch_size=32):
    torch.manual_seed(91)
    folder = pathlib.Path("data")
    folder.mkdir(exist_ok=True)
    loader = DataLoader(Menus(menus(1600, 91)), batch_size, shuffle=True)
    held_out = next(iter(DataLoader(Menus(menus(64, 92)), 64)))
    model = MenuModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=7e-4, fused=True)
    history, step = [], 0
    for epoch in range(epochs):
        start, total = time.time(), 0.0
        for words, kitchen in loader:
            loss = nn.functional.cross_entropy(model(words), kitchen)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            step += 1
            if step % 20 == 0:
                history.append({"step": step, "loss": loss.item(), "right": look(model, held_out)})
                (folder / "history.json").write_text(json.dumps(history))
                print(history[-1], flush=True)
        torch.save(model.state_dict(), folder / "menus.pt")
        gc.collect()
        print(
            f"epoch {epoch}: loss {total / len(loader):.3f} in {time.time() - start:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
