"""Intents of requests to an assistant, with transformers."""

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

INTENTS = ["lights", "weather", "music", "alarm", "shopping", "call"]
WORDS = (
    "please turn on off the lights in kitchen bedroom what is weather like today tomorrow play "
    "some jazz rock next song wake me up at seven eight set an alarm add milk bread eggs to my "
    "shopping list call mum dad office back now will it rain volume down louder stop"
).split()


class Requests(Dataset):
    def __init__(self, count, max_length, seed):
        rng = np.random.default_rng(seed)
        self.max_length = max_length
        self.rows = []
        for _ in range(count):
            intent = int(rng.integers(len(INTENTS)))
            length = int(rng.integers(4, 17))
            favourite = rng.random(length) < 0.4
            own, any_word = intent * 8 + rng.integers(0, 8, length), rng.integers(0, 60, length)
            words = np.where(favourite, own, any_word)
            self.rows.append((words % len(WORDS) + 3, intent))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        words, intent = self.rows[i]
        return {"input_ids": [1, *words.tolist(), 2][: self.max_length], "label": intent}


class Collator:
    def __init__(self, max_length):
        self.max_length = max_length

    def __call__(self, features):
        width = self.max_length
        ids = torch.zeros(len(features), width, dtype=torch.long)
        for row, feature in zip(ids, features, strict=True):
            row[: len(feature["input_ids"])] = torch.tensor(feature["input_ids"])
        labels = torch.tensor([f["label"] for f in features])
        return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels}


def main(max_length=128):
    set_seed(41)
    config = BertConfig(
        vocab_size=len(WORDS) + 3,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=max_length,
        num_labels=len(INTENTS),
    )
    arguments = TrainingArguments(
        output_dir="out/intents",
        max_steps=300,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=64,
        learning_rate=1e-3,
        logging_steps=50,
        eval_strategy="no",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=arguments,
        train_dataset=Requests(4000, max_length, 0),
        eval_dataset=Requests(400, max_length, 1),
        data_collator=Collator(max_length),
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
