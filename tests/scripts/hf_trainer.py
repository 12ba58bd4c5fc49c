"""Hugging Face Trainer on a tiny BERT with random weights and tokens made in memory; no hub.

`--accumulate` sets the gradient accumulation. The Trainer fetches batches ahead, so compare
totals. An evaluation and a checkpoint follow each epoch. The clock hangs in overridden methods of
the Trainer and in a callback. Planted: sleep in `__getitem__` (per sample), in forward (a layer
of the model), in the optimizer, in host code (`on_step_end`) and in the
checkpoint (what `torch.save` does with the optimizer's state; the model goes by safetensors).
"""

import os
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch  # noqa: E402
import transformers  # noqa: E402
from torch.utils.data import Dataset  # noqa: E402

import script_log  # noqa: E402

log = None


class Tokens(Dataset):
    def __init__(self, count, seed, ms):
        self.ids = torch.randint(5, 60, (count, 16), generator=torch.Generator().manual_seed(seed))
        self.ms = ms

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return {"input_ids": self.ids[i], "labels": int(self.ids[i, 0] > 30)}


class TrainTokens(Tokens):
    def __getitems__(self, indices):
        log.lap("other")
        return [self[i] for i in indices]


class Model(transformers.BertForSequenceClassification):
    ms = 0.0

    def forward(self, input_ids=None, attention_mask=None, labels=None, **kwargs):
        time.sleep(self.ms / 1000)
        return super().forward(input_ids, attention_mask, labels=labels, **kwargs)


class Slow:
    """Part of the optimizer's state that takes long to be pickled."""

    ms = 0.0

    def __reduce__(self):
        time.sleep(self.ms / 1000)
        return (Slow, ())


class SlowAdamW(torch.optim.AdamW):
    ms = 0.0

    def state_dict(self):
        return {**super().state_dict(), "slow": Slow()}

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


class Clock(transformers.TrainerCallback):
    host_ms = 0.0

    def on_train_begin(self, args, state, control, **kwargs):
        log.lap("set_up")

    def on_pre_optimizer_step(self, args, state, control, **kwargs):
        log.lap("other")

    def on_optimizer_step(self, args, state, control, **kwargs):
        log.lap("optimizer")
        log.end_step()

    def on_step_end(self, args, state, control, **kwargs):
        time.sleep(self.host_ms / 1000)
        log.lap("other")


class Trainer(transformers.Trainer):
    losses = []

    def compute_loss(self, model, inputs, *args, **kwargs):
        if model.training:
            log.lap("other")
        found = super().compute_loss(model, inputs, *args, **kwargs)
        if model.training:
            log.lap("forward")
        return found

    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        log.lap("backward")
        self.losses.append(loss.item())
        return loss

    def evaluate(self, *args, **kwargs):
        log.lap("other")
        found = super().evaluate(*args, **kwargs)
        log.lap("evaluation")
        return found

    def _save_checkpoint(self, *args, **kwargs):
        log.lap("other")
        super()._save_checkpoint(*args, **kwargs)
        log.lap("checkpoint")


def collate(samples):
    batch = transformers.default_data_collator(samples)
    log.lap("data_wait")
    return batch


def evaluation_collate(samples):
    return transformers.default_data_collator(samples)


class Both(Trainer):
    """Trains and evaluates with a collate function each."""

    def get_eval_dataloader(self, *args, **kwargs):
        self.data_collator, training = evaluation_collate, self.data_collator
        loader = super().get_eval_dataloader(*args, **kwargs)
        self.data_collator = training
        return loader


def main():
    global log
    parser = script_log.arguments(
        __doc__, getitem=0.7, forward=6, optimizer=5, host=3, checkpoint=100
    )
    parser.add_argument("--accumulate", type=int, default=1)
    args = parser.parse_args()
    plant = args.plant
    torch.set_num_threads(1)
    transformers.set_seed(19)
    Model.ms, SlowAdamW.ms, Clock.host_ms = plant["forward"], plant["optimizer"], plant["host"]
    Slow.ms = plant["checkpoint"]
    log = script_log.Log("hf_trainer", args.log)
    config = transformers.BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
    )
    model = Model(config)
    settings = transformers.TrainingArguments(
        output_dir=script_log.folder(args.out),
        per_device_train_batch_size=8,
        per_device_eval_batch_size=16,
        gradient_accumulation_steps=args.accumulate,
        num_train_epochs=2,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_steps=10,
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        seed=19,
        dataloader_pin_memory=False,
    )
    trainer = Both(
        model=model,
        args=settings,
        train_dataset=TrainTokens(400, 1, plant["getitem"]),
        eval_dataset=Tokens(96, 2, plant["getitem"]),
        data_collator=collate,
        optimizers=(SlowAdamW(model.parameters(), lr=1e-3), None),
        callbacks=[Clock()],
    )
    trainer.train()
    log.finish(
        model.parameters(),
        Trainer.losses,
        batches=len(Trainer.losses),
        expected_steps=trainer.state.global_step,
        workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
    )


if __name__ == "__main__":
    main()
