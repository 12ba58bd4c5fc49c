"""A model under `torch.compile`; `--backend` inductor, aot_eager or eager.

The log has the number of graphs and frames that dynamo counted. `--break-graph` puts a call into
forward that dynamo cannot trace (one graph becomes two), `--partial` has a last batch of another
size (a second, dynamic graph). Planted: sleep in `__getitem__` (per sample), in the optimizer and
in host code; nothing in forward or backward, which are the compiled code's own time.
`first_ns` is the forward and the backward of the first step, where compilation happens.
"""

import time

import torch
import torch._dynamo
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import script_log


class Rows(TensorDataset):
    ms = 0.0

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return super().__getitem__(i)


class Net(nn.Module):
    def __init__(self, break_graph):
        super().__init__()
        self.break_graph = break_graph
        self.first = nn.Linear(16, 64)
        self.blocks = nn.ModuleList(nn.Linear(64, 64) for _ in range(3))
        self.last = nn.Linear(64, 1)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        if self.break_graph:
            torch._dynamo.graph_break()
        for block in self.blocks:
            x = x + torch.nn.functional.gelu(block(x))
        return self.last(x)


class SlowAdam(torch.optim.Adam):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


def dynamo_counts():
    counters = torch._dynamo.utils.counters
    return {
        "unique_graphs": counters["stats"]["unique_graphs"],
        "calls_captured": counters["stats"]["calls_captured"],
        "frames_ok": counters["frames"]["ok"],
        "frames_total": counters["frames"]["total"],
        "graph_breaks": sum(counters["graph_break"].values()),
    }


def main():
    parser = script_log.arguments(__doc__, getitem=0.5, optimizer=4, host=3)
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--how", choices=["function", "method"], default="function")
    parser.add_argument("--break-graph", action="store_true")
    parser.add_argument("--partial", action="store_true")
    args = parser.parse_args()
    plant = args.plant
    torch.set_num_threads(1)
    torch.manual_seed(16)
    Rows.ms, SlowAdam.ms = plant["getitem"], plant["optimizer"]
    x = torch.randn(324, 16)
    data = Rows(x, x.prod(1, keepdim=True))
    loader = DataLoader(data, batch_size=8, shuffle=True, drop_last=not args.partial)
    net = Net(args.break_graph)
    model = net
    if args.how == "function":
        model = torch.compile(net, backend=args.backend)
    else:
        net.compile(backend=args.backend)
    optimizer = SlowAdam(model.parameters(), lr=1e-3)
    log = script_log.Log("compiled", args.log)
    losses = []
    log.start()
    for epoch in range(3):
        for x, y in loader:
            log.lap("data_wait")
            optimizer.zero_grad()
            log.lap("other")
            out = model(x)
            log.lap("forward")
            loss = nn.functional.mse_loss(out, y)
            log.lap("other")
            loss.backward()
            log.lap("backward")
            optimizer.step()
            log.lap("optimizer")
            log.end_step()
            losses.append(loss.item())
            time.sleep(plant["host"] / 1000)
            log.lap("other")
        log.lap("epoch_edge")
        print(f"epoch {epoch} loss {losses[-1]:.5f}", flush=True)
        log.lap("logging")
    first = {phase: log.steps[0][phase] for phase in ("forward", "backward")}
    counts = dynamo_counts()
    print(counts)
    log.finish(
        net.parameters(),
        losses,
        backend=args.backend,
        dynamo=counts,
        first_ns=first,
        workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
    )


if __name__ == "__main__":
    main()
