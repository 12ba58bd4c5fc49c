import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class TrainingArguments:
    output_dir: str = "out/digits"
    num_train_epochs: int = 7
    train_batch_size: int = 64
    eval_batch_size: int = 128
    learning_rate: float = 1e-3
    logging_steps: int = 50
    eval_steps: int = 200
    seed: int = 42


def make_digits(n, seed):
    """Seven-segment digits, shifted and noisy, 28x28."""
    rng = np.random.default_rng(seed)
    segments = {
        0: "abcdef",
        1: "bc",
        2: "abged",
        3: "abgcd",
        4: "fgbc",
        5: "afgcd",
        6: "afgedc",
        7: "abc",
        8: "abcdefg",
        9: "abcdfg",
    }
    box = {
        "a": (4, 6, 9, 19),
        "g": (13, 15, 9, 19),
        "d": (22, 24, 9, 19),
        "f": (4, 15, 8, 10),
        "b": (4, 15, 18, 20),
        "e": (13, 24, 8, 10),
        "c": (13, 24, 18, 20),
    }
    glyphs = np.zeros((10, 28, 28), np.float32)
    for digit, names in segments.items():
        for s in names:
            y0, y1, x0, x1 = box[s]
            glyphs[digit, y0:y1, x0:x1] = 1.0
    labels = rng.integers(0, 10, n)
    images = glyphs[labels] + rng.normal(0, 0.4, (n, 28, 28)).astype(np.float32)
    return torch.tensor(images)[:, None], torch.tensor(labels)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * 49, 128),
            nn.ReLU(),
            nn.Linear(128, 10),
        )

    def forward(self, images):
        return self.body(images)


class Trainer:
    def __init__(self, model, args, train_dataset, eval_dataset):
        self.model, self.args = model, args
        self.train_loader = DataLoader(train_dataset, args.train_batch_size, shuffle=True)
        self.eval_loader = DataLoader(eval_dataset, args.eval_batch_size)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
        self.criterion = nn.CrossEntropyLoss()
        self.state = {"global_step": 0, "best_accuracy": 0.0, "log_history": []}

    def train(self):
        self.model.train()
        running = 0.0
        for epoch in range(self.args.num_train_epochs):
            for images, labels in self.train_loader:
                loss = self.training_step(images, labels)
                running += loss
                step = self.state["global_step"] = self.state["global_step"] + 1
                if step % self.args.logging_steps == 0:
                    self.log({"loss": running / self.args.logging_steps, "epoch": epoch})
                    running = 0.0
                if step % self.args.eval_steps == 0:
                    metrics = self.evaluate()
                    self.log(metrics)
                    self.model.train()
        self.save()

    def training_step(self, images, labels):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        right = total = 0
        for images, labels in self.eval_loader:
            right += (self.model(images).argmax(-1) == labels).sum().item()
            total += len(labels)
        self.state["best_accuracy"] = max(self.state["best_accuracy"], right / total)
        return {"eval_accuracy": right / total}

    def log(self, values):
        values = {"step": self.state["global_step"], **values}
        self.state["log_history"].append(values)
        print(values)

    def save(self):
        out = Path(self.args.output_dir)
        out.mkdir(parents=True, exist_ok=True)
        torch.save(self.model.state_dict(), out / "model.pt")
        (out / "state.json").write_text(json.dumps({**asdict(self.args), **self.state}))


if __name__ == "__main__":
    args = TrainingArguments()
    torch.manual_seed(args.seed)
    train_set = TensorDataset(*make_digits(4000, 0))
    eval_set = TensorDataset(*make_digits(1000, 1))
    trainer = Trainer(Classifier(), args, train_set, eval_set)
    start = time.time()
    trainer.train()
    print(f"train_runtime {time.time() - start:.1f} best {trainer.state['best_accuracy']:.3f}")
