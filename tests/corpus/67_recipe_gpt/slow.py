"""Fit a small GPT-2 to recipes."""

import torch
from torch.utils.data import Dataset
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
    default_data_collator,
    set_seed,
)

VERBS = "chop peel slice boil fry bake stir mix pour add heat season grate roll knead".split()
THINGS = (
    "onions carrots potatoes rice noodles flour butter eggs milk cheese tomatoes beans garlic "
    "pepper salt oil water cream chicken fish lemon sugar yeast dough spinach"
).split()
TIMES = "briefly gently twice for five minutes until golden until soft overnight".split()
VOCABULARY = ["<end>", ".", "the", "and", "with", *dict.fromkeys(VERBS + THINGS + TIMES)]
WORD = {word: i for i, word in enumerate(VOCABULARY)}


class Recipes(Dataset):
    """Texts of equal length, cut out of one long string of recipes."""

    def __init__(self, count, length, seed):
        generator = torch.Generator().manual_seed(seed)

        def pick(words):
            return WORD[words[int(torch.randint(len(words), (1,), generator=generator))]]

        ids = []
        while len(ids) < count * length:
            first = pick(THINGS)
            for _ in range(5):
                ids += [pick(VERBS), WORD["the"], first, WORD["with"], pick(THINGS)]
                ids += [pick(TIMES), WORD["."]]
            ids.append(WORD["<end>"])
        self.rows = torch.tensor(ids[: count * length]).view(count, length)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i], "labels": self.rows[i]}


def main(length=64):
    set_seed(76)
    config = GPT2Config(
        vocab_size=len(VOCABULARY),
        n_positions=length,
        n_embd=160,
        n_layer=4,
        n_head=4,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    arguments = TrainingArguments(
        output_dir="out/recipes",
        num_train_epochs=3,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        gradient_checkpointing=True,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        learning_rate=1e-3,
        warmup_steps=10,
        lr_scheduler_type="cosine",
        logging_steps=20,
        eval_strategy="epoch",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=arguments,
        train_dataset=Recipes(640, length, 0),
        eval_dataset=Recipes(64, length, 1),
        data_collator=default_data_collator,
    )
    result = trainer.train()
    print(f"steps/s {result.metrics['train_steps_per_second']:.3f}")


if __name__ == "__main__":
    main()
