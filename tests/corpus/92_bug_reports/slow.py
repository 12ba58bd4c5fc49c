"""Route bug reports to the team that should read them (convolutions over hashed words)."""

import base64
import json
import pathlib
import random
import re
import time
import zlib

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

TEAMS = {
    "billing": "invoice refund card tax coupon checkout amount currency",
    "editor": "cursor paste font undo selection table scroll shortcut",
    "sync": "conflict upload offline folder retry stale version merge",
    "mobile": "swipe rotate battery keyboard notification tablet crash widget",
}
COMMON = (
    "the when i click on it nothing happens after update page shows error again please help "
    "since yesterday my account cannot open same problem in browser and app thanks"
).split()
WIDTH, BUCKETS = 80, 5000

MAIL = re.compile(r"[\w.+-]+@[\w-]+\.\w+")
LINK = re.compile(r"https?://\S+")
NUMBER = re.compile(r"\b\d+\b")


def collect_reports(path, count):
    """A report ends with the token of the session, as the form sends it."""
    rng = random.Random(114)
    names, own = list(TEAMS), [words.split() for words in TEAMS.values()]
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as file:
        for _ in range(count):
            team = rng.randrange(len(names))
            words = []
            for _ in range(rng.randint(50, 75)):
                words.append(rng.choice(own[team] if rng.random() < 0.25 else COMMON))
            words.insert(9, f"{rng.choice(COMMON)}.{rng.choice(COMMON)}@example.org")
            words.insert(20, f"https://example.org/{rng.randrange(10**6)}")
            token = base64.urlsafe_b64encode(rng.randbytes(rng.randint(525, 1125)))
            text = " ".join(words) + "\nsession: " + token.decode().rstrip("=")
            file.write(json.dumps({"text": text, "team": names[team]}) + "\n")


def scrub(text):
    text = MAIL.sub(" <mail> ", text)
    text = LINK.sub(" <link> ", text)
    return NUMBER.sub(" <number> ", text).lower()


class Reports(Dataset):
    def __init__(self, path):
        self.rows = [json.loads(line) for line in path.read_text().splitlines()]
        self.teams = {name: k for k, name in enumerate(TEAMS)}

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        words = scrub(row["text"]).split()[:WIDTH]
        ids = [zlib.crc32(word.encode()) % BUCKETS + 1 for word in words]
        return torch.tensor(ids + [0] * (WIDTH - len(ids))), self.teams[row["team"]]


class Router(nn.Module):
    def __init__(self, size=128, channels=192):
        super().__init__()
        self.words = nn.Embedding(BUCKETS + 1, size, padding_idx=0)
        self.first = nn.Conv1d(size, channels, 3, padding=1)
        self.second = nn.Conv1d(channels, channels, 3, padding=1)
        self.out = nn.Linear(channels, len(TEAMS))

    def forward(self, ids):
        x = self.words(ids).transpose(1, 2)
        x = F.relu(self.first(x))
        x = F.relu(self.second(x))
        return self.out(F.dropout(x.amax(2), 0.2, self.training))


def main(epochs=4, batch_size=20):
    torch.manual_seed(114)
    path = pathlib.Path("data/reports.jsonl")
    collect_reports(path, 1200)
    loader = DataLoader(Reports(path), batch_size=batch_size, shuffle=True)
    model = Router()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        began, total = time.time(), 0.0
        for ids, team in loader:
            loss = F.cross_entropy(model(ids), team)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        took = time.time() - began
        print(f"epoch {epoch} loss {total / len(loader):.4f} in {took:.2f}s", flush=True)


if __name__ == "__main__":
    main()
