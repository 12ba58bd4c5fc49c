"""Repair scanned lines of a register letter by letter; error rate after each epoch (transformers)."""

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForTokenClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

LETTERS = "- abcdefghijklmnopqrstuvwxyz"  # 0 stands for "no letter here"
NAMES = (
    "anna maria josef johann peter paul margarete elisabeth wilhelm heinrich clara emma otto "
    "miller baker weaver smith fisher carpenter cooper mason tanner shepherd hunter potter"
).split()
WIDTH = 64


class Register(Dataset):
    """Lines of names; the scanner doubles letters and takes some for others."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.lines = [self.scan(rng) for _ in range(count)]

    def scan(self, rng):
        shown, meant = [], []
        while len(shown) < WIDTH:
            for letter in NAMES[rng.integers(len(NAMES))] + " ":
                code = LETTERS.index(letter)
                wrong = rng.random() < 0.25
                shown.append((code * 5) % 27 + 1 if wrong else code)
                meant.append(code)
                if rng.random() < 0.15:
                    shown.append(shown[-1])
                    meant.append(0)
        return torch.tensor(shown[:WIDTH]), torch.tensor(meant[:WIDTH])

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, i):
        shown, meant = self.lines[i]
        return {"input_ids": shown, "labels": meant}


def as_text(codes):
    return "".join(LETTERS[c] for c in codes if c)


def as_codes(lines):
    codes = np.zeros((max(map(len, lines)), len(lines)), np.int32)
    for k, line in enumerate(lines):
        codes[: len(line), k] = [ord(letter) for letter in line]
    return codes


def edit_distances(read, truth):
    """Distances of all pairs of lines together."""
    a, b = as_codes(read), as_codes(truth)
    table = np.zeros((len(a) + 1, len(b) + 1, len(read)), np.int32)
    table[:, 0] = np.arange(len(a) + 1)[:, None]
    table[0] = np.arange(len(b) + 1)[:, None]
    for i in range(len(a)):
        for j in range(len(b)):
            gap = np.minimum(table[i, j + 1], table[i + 1, j]) + 1
            table[i + 1, j + 1] = np.minimum(gap, table[i, j] + (a[i] != b[j]))
    ends = [len(line) for line in read], [len(line) for line in truth]
    return table[(*ends, np.arange(len(read)))]


def compute_metrics(prediction):
    read = [as_text(row) for row in prediction.predictions]
    truth = [as_text(row) for row in prediction.label_ids]
    errors = int(sum(edit_distances(read, truth)))
    return {"cer": errors / sum(map(len, truth))}


def best_letters(logits, labels):
    return logits.argmax(-1)


def main():
    set_seed(92)
    config = BertConfig(
        vocab_size=len(LETTERS),
        hidden_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=192,
        max_position_embeddings=WIDTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=len(LETTERS),
    )
    arguments = TrainingArguments(
        output_dir="data/register",
        num_train_epochs=8,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=2e-3,
        logging_strategy="epoch",
        eval_strategy="epoch",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(
        model=BertForTokenClassification(config),
        args=arguments,
        train_dataset=Register(1280, 0),
        eval_dataset=Register(1000, 1),
        compute_metrics=compute_metrics,
        preprocess_logits_for_metrics=best_letters,
    )
    trainer.train()


if __name__ == "__main__":
    main()
