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


def edit_distance(a, b):
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) + 1):
        table[i][0] = i
    for j in range(len(b) + 1):
        table[0][j] = j
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            same = a[i - 1] == b[j - 1]
            table[i][j] = min(
                table[i - 1][j] + 1,
                table[i][j - 1] + 1,
                table[i - 1][j - 1] + (0 if same else 1),
            )
    return table[len(a)][len(b)]


def edit_distances(read, truth):
    return [edit_distance(a, b) for a, b in zip(read, truth, strict=True)]


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
