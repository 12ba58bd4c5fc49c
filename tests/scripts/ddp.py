"""DistributedDataParallel on gloo; start it with `torchrun --nproc-per-node 2 ddp.py`.

Each rank writes `LOG.RANK` (`--record LOG`: torchrun takes `--log` for its own). Planted: sleep in
`__getitem__` (per sample), forward, backward, optimizer and host code on both ranks, and
`straggle` on rank 1 alone, either after the backward, so that rank 0 waits in the explicit
all_reduce of the loss (`--where host`, the default), or in its forward, so that rank 0 waits
inside its backward (`--where forward`).
"""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

import script_log


class Points(Dataset):
    def __init__(self, ms):
        self.ms = ms

    def __len__(self):
        return 960

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        x = torch.randn(16, generator=torch.Generator().manual_seed(i))
        return x, x[:1] * x[1:2]


class SlowBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ms):
        ctx.ms = ms
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        time.sleep(ctx.ms / 1000)
        return grad, None


class Net(nn.Module):
    def __init__(self, forward_ms, backward_ms):
        super().__init__()
        self.forward_ms, self.backward_ms = forward_ms, backward_ms
        self.net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        time.sleep(self.forward_ms / 1000)
        return SlowBackward.apply(self.net(x), self.backward_ms)


class SlowSGD(torch.optim.SGD):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


def train(args, rank):
    plant = args.plant
    late = plant["straggle"] if rank == 1 else 0
    late_forward = late if args.where == "forward" else 0
    SlowSGD.ms = plant["optimizer"]
    model = Net(plant["forward"] + late_forward, plant["backward"])
    ddp = DistributedDataParallel(model)
    optimizer = SlowSGD(ddp.parameters(), lr=0.02)
    data = Points(plant["getitem"])
    sampler = DistributedSampler(data, seed=3)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    log = script_log.Log("ddp", args.log and f"{args.log}.{rank}")
    losses = []
    log.start()
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            log.lap("data_wait")
            optimizer.zero_grad()
            log.lap("other")
            loss = nn.functional.mse_loss(ddp(x), y)
            log.lap("forward")
            loss.backward()
            log.lap("backward")
            time.sleep((late - late_forward) / 1000)
            mean = loss.detach().clone()
            log.lap("other")
            dist.all_reduce(mean)
            log.lap("communication")
            optimizer.step()
            log.lap("optimizer")
            log.end_step()
            losses.append(mean.item() / dist.get_world_size())
            if rank == 0 and len(losses) % 30 == 0:
                print(f"step {len(losses)} loss {losses[-1]:.4f}", flush=True)
            log.lap("logging")
            time.sleep(plant["host"] / 1000)
            log.lap("other")
        log.lap("epoch_edge")
    log.finish(
        model.parameters(),
        losses,
        rank=rank,
        world_size=dist.get_world_size(),
        workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
    )


def main():
    parser = script_log.arguments(
        __doc__, getitem=0.4, forward=4, backward=4, optimizer=2, host=2, straggle=7
    )
    parser.add_argument("--where", choices=["host", "forward"], default="host")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(17)
    dist.init_process_group("gloo")
    train(args, int(os.environ["RANK"]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
