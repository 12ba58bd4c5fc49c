"""Samples come over a Unix socket from a file server that is slow to answer: the workers wait.

The server is a process of the script's own with one thread for each connection; each worker has
its connection. Planted: `latency` milliseconds before the server answers, per sample. Needs no
slow disk: the wait is a blocked `recv` on any machine.
"""

import multiprocessing
import os
import socket
import socketserver
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from worker_view import WorkerView

import script_log

BATCH = 4
SIZE = 64 * 1024


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            time.sleep(self.server.ms / 1000)
            self.wfile.write(bytes([int(line) % 251]) * SIZE)


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    ms = 0.0


def serve(path, ms, ready):
    with Server(path, Handler) as server:
        server.ms = ms
        ready.set()
        server.serve_forever()


class Remote(Dataset):
    def __init__(self, path, view):
        self.path, self.view = path, view
        self.file = None

    def __len__(self):
        return 240

    def __getitem__(self, i):
        self.view.item()
        if self.file is None:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(self.path)
            self.file = connection.makefile("rwb")
        self.file.write(f"{i}\n".encode())
        self.file.flush()
        data = np.frombuffer(self.file.read(SIZE), np.uint8)
        return torch.from_numpy(data[:32].astype(np.float32) / 255)


class Collate:
    def __init__(self, view):
        self.view = view

    def __call__(self, samples):
        self.view.collating()
        batch = torch.stack(samples)
        self.view.batch_done()
        return batch


def train(args, data, view):
    loader = DataLoader(
        data,
        batch_size=BATCH,
        shuffle=True,
        num_workers=args.workers,
        collate_fn=Collate(view),
        multiprocessing_context="fork" if args.workers else None,
    )
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    log = script_log.Log("remote_storage", args.log)
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
    per_batch_ns = args.plant["latency"] * BATCH * 1e6
    log.finish(
        model.parameters(), losses, workers={"planted": "blocked", "per_batch_ns": per_batch_ns}
    )


def main():
    parser = script_log.arguments(__doc__, latency=10, host=1)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--view", help="folder for the workers' own view")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(47)
    path = os.path.join(script_log.folder(args.out), "server.sock")
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    server = context.Process(target=serve, args=(path, args.plant["latency"], ready), daemon=True)
    server.start()
    ready.wait()
    view = WorkerView(args.view)
    train(args, Remote(path, view), view)
    server.terminate()
    server.join()


if __name__ == "__main__":
    main()
