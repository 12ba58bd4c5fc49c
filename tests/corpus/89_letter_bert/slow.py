"""Which department should answer a letter? A BERT of medium size under the transformers Trainer."""

import random
import re
import time

import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

DEPARTMENTS = ["roads", "parks", "taxes", "schools", "water"]
TOPICS = {
    "roads": "pothole traffic light crossing bridge kerb lorry noise junction",
    "parks": "bench tree playground lawn fountain dog gate litter",
    "taxes": "notice payment refund deadline form assessment fee account",
    "schools": "teacher pupil bus lunch classroom holiday timetable gym",
    "water": "pipe meter valve pressure drain tap sewer supply",
}
FILLERS = "dear sir or madam we would like to ask you about the near our house since last week".split()


def letters(count, seed):
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        label = rng.randrange(len(DEPARTMENTS))
        topic = TOPICS[DEPARTMENTS[label]].split()
        size = rng.randint(58, 62)
        words = [rng.choice(topic if rng.random() < 0.15 else FILLERS) for _ in range(size)]
        rows.append((" ".join(words).capitalize() + ".", label))
    return rows


class Letters(Dataset):
    def __init__(self, rows, vocabulary):
        self.rows, self.vocabulary = rows, vocabulary

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        text, label = self.rows[i]
        ids = [self.vocabulary.get(word, 3) for word in re.findall(r"\w+", text.lower())]
        return {"ids": [1, *ids, 2], "label": label}


def pad(features):
    width = max(len(f["ids"]) for f in features)
    ids = torch.tensor([f["ids"] + [0] * (width - len(f["ids"])) for f in features])
    labels = torch.tensor([f["label"] for f in features])
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels}


class Times(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        self.start = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        print(f"step {state.global_step} took {time.perf_counter() - self.start:.3f} s", flush=True)


def main():
    set_seed(102)
    words = sorted({*FILLERS, *" ".join(TOPICS.values()).split()})
    vocabulary = {word: i for i, word in enumerate(words, 4)}
    config = BertConfig(
        vocab_size=len(vocabulary) + 4,
        hidden_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=1024,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=len(DEPARTMENTS),
    )
    arguments = TrainingArguments(
        output_dir="data/letters",
        num_train_epochs=3,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=32,
        learning_rate=3e-4,
        logging_steps=1,
        eval_strategy="epoch",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        remove_unused_columns=False,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=arguments,
        train_dataset=Letters(letters(576, 0), vocabulary),
        eval_dataset=Letters(letters(32, 1), vocabulary),
        data_collator=pad,
        callbacks=[Times()],
    )
    trainer.train()


if __name__ == "__main__":
    main()
