"""Files that are evicted from the page cache before each read: the workers wait for storage.

Each sample reads one file of `--mib` MiB, in one `read()` or, with `--pattern scattered`, in
`--pieces` small reads at random places with read-ahead off, which waits for latency. With
`--source DIR` the files of that folder are read instead (a throttled or FUSE mount; `--keep`
leaves the page cache alone); `--make DIR` only writes such files and ends. Nothing is planted: the
storage itself is what is slow, or is not; `read_ns` per batch is in the workers' view.
"""

import os
import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from worker_view import WorkerView

import script_log

BATCH = 4


def make_files(folder, count, size):
    os.makedirs(folder, exist_ok=True)
    source = np.random.default_rng(1)
    for i in range(count):
        with open(os.path.join(folder, f"{i:04d}.bin"), "wb") as file:
            file.write(source.integers(0, 256, size, dtype=np.uint8).tobytes())
            file.flush()
            os.fsync(file.fileno())


class Files(Dataset):
    def __init__(self, folder, view, evict, pieces):
        self.paths = sorted(os.path.join(folder, n) for n in os.listdir(folder))
        self.view, self.evict, self.pieces = view, evict, pieces
        self.read_ns = 0

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        self.view.item()
        fd = os.open(self.paths[i], os.O_RDONLY)
        try:
            size = os.fstat(fd).st_size
            if self.evict:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            begin = time.perf_counter_ns()
            data = self.scattered(fd, size, i) if self.pieces else self.whole(fd, size)
            self.read_ns += time.perf_counter_ns() - begin
        finally:
            os.close(fd)
        data = np.frombuffer(data, np.uint8)
        return torch.from_numpy(data[:: len(data) // 64][:64].astype(np.float32) / 255)

    def whole(self, fd, size):
        parts = []
        while sum(map(len, parts)) < size:
            parts.append(os.read(fd, size))
        return b"".join(parts)

    def scattered(self, fd, size, i):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        places = random.Random(i).sample(range(size // 4096), self.pieces)
        return b"".join(os.pread(fd, 4096, 4096 * place) for place in places)


class Collate:
    def __init__(self, data, view):
        self.data, self.view = data, view

    def __call__(self, samples):
        self.view.collating()
        batch = torch.stack(samples)
        self.view.batch_done(read_ns=self.data.read_ns)
        self.data.read_ns = 0
        return batch


def main():
    parser = script_log.arguments(__doc__, host=1)
    parser.add_argument("--source", help="folder of files to read")
    parser.add_argument("--make", help="write the files to this folder and end")
    parser.add_argument("--keep", action="store_true", help="do not evict before a read")
    parser.add_argument("--pattern", choices=["whole", "scattered"], default="whole")
    parser.add_argument("--pieces", type=int, default=64, help="reads of 4 KiB, if scattered")
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--mib", type=float, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--context", choices=["fork", "spawn"], default="fork")
    parser.add_argument("--view", help="folder for the workers' own view")
    args = parser.parse_args()
    size = int(args.mib * 2**20)
    if args.make:
        return make_files(args.make, args.files, size)
    folder = args.source
    if folder is None:
        folder = os.path.join(script_log.folder(args.out), "files")
        make_files(folder, args.files, size)
    torch.set_num_threads(1)
    torch.manual_seed(41)
    view = WorkerView(args.view)
    pieces = args.pieces if args.pattern == "scattered" else 0
    data = Files(folder, view, not args.keep, pieces)
    loader = DataLoader(
        data,
        batch_size=BATCH,
        shuffle=True,
        num_workers=args.workers,
        collate_fn=Collate(data, view),
        multiprocessing_context=args.context if args.workers else None,
        persistent_workers=args.workers > 0,
    )
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    log = script_log.Log("slow_storage", args.log)
    losses = []
    log.start()
    for epoch in range(args.epochs):
        batches = iter(loader)
        log.lap("epoch_edge")
        for x in batches:
            log.lap("data_wait")
            optimizer.zero_grad()
            loss = (model(x) - x.mean(1, keepdim=True)).square().mean()
            log.lap("forward")
            loss.backward()
            log.lap("backward")
            optimizer.step()
            log.lap("optimizer")
            log.end_step()
            losses.append(loss.item())
            time.sleep(args.plant["host"] / 1000)
            log.lap("other")
        log.lap("epoch_edge")
        print(f"epoch {epoch} loss {losses[-1]:.5f}")
    log.finish(
        model.parameters(),
        losses,
        workers={"planted": "blocked", "per_batch_ns": None},
        bytes_per_batch=None if args.source else BATCH * (4096 * pieces or size),
        evicted=not args.keep,
    )


if __name__ == "__main__":
    main()
