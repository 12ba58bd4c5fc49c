"""Kind of a court filing from its first lines: a small BERT under the transformers Trainer."""

import random
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

KINDS = {
    "motion": "moves dismiss grounds pursuant relief requests stay",
    "order": "ordered hereby granted denied court finds directed",
    "appeal": "appellant reversal error below panel affirmed record",
    "brief": "argument authorities amicus statute precedent summary facts",
    "notice": "hearing served date appearance counsel parties filed",
}
PLAIN = "the of and to in a that plaintiff defendant case no county state on by for is this".split()


def filings(count, seed):
    rng = random.Random(seed)
    kinds = [words.split() for words in KINDS.values()]
    vocabulary = {w: i for i, w in enumerate(sorted({*PLAIN, *sum(kinds, [])}), 4)}
    rows = []
    for _ in range(count):
        kind = rng.randrange(len(kinds))
        words = [rng.choice(kinds[kind] if rng.random() < 0.1 else PLAIN) for _ in range(30)]
        rows.append(([1, *(vocabulary[w] for w in words), 2], kind))
    return rows, len(vocabulary) + 4


class Filings(Dataset):
    def __init__(self, rows):
        self.ids = torch.tensor([ids for ids, _ in rows])
        self.kinds = torch.tensor([kind for _, kind in rows])

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        ids = self.ids[i]
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": self.kinds[i]}


class Stopwatch(TrainerCallback):
    def on_epoch_begin(self, args, state, control, **kwargs):
        self.start = time.time()

    def on_epoch_end(self, args, state, control, **kwargs):
        took = time.time() - self.start
        print(f"after step {state.global_step}: epoch took {took:.2f} s", flush=True)


def main():
    set_seed(124)
    rows, size = filings(1120, 124)
    config = BertConfig(
        vocab_size=size,
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=512,
        max_position_embeddings=40,
        num_labels=len(KINDS),
    )
    arguments = TrainingArguments(
        output_dir="data/filings",
        num_train_epochs=4,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=64,
        learning_rate=5e-4,
        warmup_steps=20,
        logging_steps=50,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        skip_memory_metrics=False,
        use_cpu=True,
        seed=124,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=arguments,
        train_dataset=Filings(rows[:800]),
        eval_dataset=Filings(rows[800:]),
        callbacks=[Stopwatch()],
    )
    result = trainer.train()
    trainer.log_metrics("train", result.metrics)
    trainer.log_metrics("eval", trainer.evaluate())


if __name__ == "__main__":
    main()
