"""Keyword spotting. Clips live in an object store; a stand-in for it runs on loopback."""

import http.server
import io
import threading
import time
import urllib.request
import wave

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

WORDS = ["yes", "no", "stop", "go", "left", "right"]
RATE, SECONDS, CLIPS = 8000, 1.0, 640


def synthesise(index):
    rng = np.random.default_rng(index)
    t = np.arange(int(RATE * SECONDS)) / RATE
    base = 180 + 70 * (index % len(WORDS))
    tone = np.sin(2 * np.pi * base * t * (1 + 0.1 * t)) * np.exp(-3 * t)
    sound = (0.6 * tone + 0.05 * rng.normal(size=len(t))) * 20000
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(sound.astype("<i2").tobytes())
    return buffer.getvalue()


class Store(http.server.BaseHTTPRequestHandler):
    """GET /clip/<n>, GET /pack; a round trip as to a bucket in another region."""

    clips = [synthesise(i) for i in range(CLIPS)]

    def do_GET(self):
        time.sleep(0.004)
        if self.path == "/pack":
            body = b"".join(self.clips)
        else:
            body = self.clips[int(self.path.rsplit("/", 1)[1])]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def fetch(url):
    with urllib.request.urlopen(url) as reply:
        return reply.read()


class SpeechCommands(Dataset):
    def __init__(self, store):
        self.store = store
        self.window = torch.hann_window(256)
        pack = fetch(f"{store}/pack")
        size = len(pack) // CLIPS
        self.clips = [pack[i * size : (i + 1) * size] for i in range(CLIPS)]

    def __len__(self):
        return CLIPS

    def __getitem__(self, i):
        body = self.clips[i]
        with wave.open(io.BytesIO(body)) as clip:
            pcm = np.frombuffer(clip.readframes(clip.getnframes()), "<i2").copy()
        sound = torch.from_numpy(pcm).float() / 32768
        spec = torch.stft(sound, 256, 128, window=self.window, return_complex=True)
        return torch.log(spec.abs() + 1e-4)[None], i % len(WORDS)


def build():
    def layer(cin, cout):
        conv = nn.Conv2d(cin, cout, 3, stride=2, padding=1)
        return nn.Sequential(conv, nn.BatchNorm2d(cout), nn.ReLU())

    body = nn.Sequential(layer(1, 16), layer(16, 32), layer(32, 64), nn.AdaptiveAvgPool2d(1))
    return nn.Sequential(body, nn.Flatten(), nn.Linear(64, len(WORDS)))


def main():
    torch.manual_seed(0)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    clips = SpeechCommands(f"http://127.0.0.1:{server.server_port}")
    loader = DataLoader(clips, batch_size=16, shuffle=True)
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(4):
        started, right = time.time(), 0
        for spec, word in loader:
            out = model(spec)
            loss = nn.functional.cross_entropy(out, word)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (out.argmax(1) == word).sum().item()
        acc = right / len(clips)
        print(f"epoch {epoch} acc {acc:.3f} {time.time() - started:.2f} s", flush=True)
    server.shutdown()


if __name__ == "__main__":
    main()
