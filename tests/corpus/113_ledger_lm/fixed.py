"""A small GPT-2 on the words of old account books, with the transformers Trainer."""

import random
import time

import torch
from torch.utils.data import Dataset
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

GOODS = "wool flax salt tallow hides herring barley malt iron timber pitch wax linen rope".split()
VERBS = ["paid", "received", "owed", "lent", "sold", "bought"]
PLACES = ["lynn", "boston", "ely", "wisbech", "thetford", "norwich", "yarmouth"]
WORDS = ["<s>", ".", "to", "of", "at", "for", "shillings", *GOODS, *VERBS, *PLACES]
WORDS += [str(n) for n in range(1, 61)] + [f"merchant{n}" for n in range(1800)]
INDEX = {w: i for i, w in enumerate(WORDS)}
LENGTH = 48


def entry(rng):
    who, whom, amount = rng.randrange(1800), rng.randrange(1800), rng.randint(1, 60)
    return (
        f"merchant{who} {rng.choice(VERBS)} {amount} shillings to merchant{whom} "
        f"for {rng.choice(GOODS)} at {rng.choice(PLACES)} ."
    ).split()


class Ledger(Dataset):
    def __init__(self, count, seed):
        rng = random.Random(seed)
        self.pages = []
        for _ in range(count):
            words = ["<s>"]
            while len(words) < LENGTH:
                words += entry(rng)
            self.pages.append(torch.tensor([INDEX[w] for w in words[:LENGTH]]))

    def __len__(self):
        return len(self.pages)

    def __getitem__(self, i):
        return {"input_ids": self.pages[i], "labels": self.pages[i]}


def compute_metrics(prediction):
    guess, labels = prediction
    return {"token_accuracy": float((guess[:, :-1] == labels[:, 1:]).mean())}


def best_words(logits, labels):
    return logits.argmax(dim=-1)


class Timer(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.last = time.time()

    def on_evaluate(self, args, state, control, metrics, **kwargs):
        now, took = time.time(), time.time() - self.last
        accuracy, loss = metrics["eval_token_accuracy"], metrics["eval_loss"]
        print(
            f"step {state.global_step} loss {loss:.3f} accuracy {accuracy:.3f} {took:.2f} s",
            flush=True,
        )
        self.last = now


def main():
    set_seed(17)
    config = GPT2Config(
        vocab_size=len(WORDS),
        n_positions=LENGTH,
        n_embd=96,
        n_layer=2,
        n_head=4,
        bos_token_id=0,
        eos_token_id=0,
    )
    training = TrainingArguments(
        output_dir="data/ledger",
        num_train_epochs=4,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=8,
        learning_rate=1e-3,
        eval_strategy="epoch",
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=17,
    )
    Trainer(
        model=GPT2LMHeadModel(config),
        args=training,
        train_dataset=Ledger(480, 1),
        eval_dataset=Ledger(400, 2),
        compute_metrics=compute_metrics,
        preprocess_logits_for_metrics=best_words,
        callbacks=[Timer()],
    ).train()


if __name__ == "__main__":
    main()
