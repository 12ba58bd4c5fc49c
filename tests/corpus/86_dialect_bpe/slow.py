# %% Language model of a small dialect: own byte-pair encoding, then a small causal transformer
import collections
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(99)
torch.manual_seed(99)

# %% text
STEMS = [
    "".join(random.choice("bdfgklmnprstw") + random.choice("aeiou") for _ in range(n))
    for n in (1, 2, 2, 3) * 60
]
ENDINGS = ["", "", "n", "li", "tsch", "ig", "este"]


def write_text(count):
    words, last = [], 0
    for _ in range(count):
        last = (last * 3 + random.choice((1, 2, 5, 11))) % len(STEMS)
        words.append(STEMS[last] + random.choice(ENDINGS))
    return " ".join(words)


text = write_text(60_000)


# %% tokens
def join_pair(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        if i + 1 < len(symbols) and symbols[i] == pair[0] and symbols[i + 1] == pair[1]:
            out.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


def learn_merges(text, count):
    words = [[*word, "_"] for word in text.split()]
    merges = []
    for _ in range(count):
        pairs = collections.Counter()
        for symbols in words:
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += 1
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        words = [join_pair(symbols, best) for symbols in words]
        merges.append(best)
    return merges


def encode(text, merges):
    known, out = {}, []
    for word in text.split():
        if word not in known:
            symbols = [*word, "_"]
            for pair in merges:
                symbols = join_pair(symbols, pair)
            known[word] = symbols
        out.extend(known[word])
    return out


merges = learn_merges(text, 120)
symbols = encode(text, merges)
vocabulary = {s: i for i, s in enumerate(sorted(set(symbols)))}
tokens = torch.tensor([vocabulary[s] for s in symbols])
print(f"{len(vocabulary)} tokens, text of {len(tokens)}", flush=True)


# %% model
CONTEXT, WIDTH, HEADS = 64, 128, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(len(vocabulary), WIDTH)
        self.place = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.blocks = nn.Sequential(Block(), Block())
        self.out = nn.Linear(WIDTH, len(vocabulary))

    def forward(self, x):
        return self.out(self.blocks(self.token(x) + self.place))


# %% training
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
windows = tokens.unfold(0, CONTEXT + 1, 1)
start = time.time()
for step in range(1, 261):
    batch = windows[torch.randint(len(windows), (16,))]
    logits = model(batch[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        rate = step / (time.time() - start)
        print(f"step {step:4d} loss {loss.item():.3f} {rate:.2f} it/s", flush=True)
