"""Classify rendered textures with a plain convolutional network."""

import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
CLASSES, SIDE = 8, 48


def textures(count):
    """Sinusoidal gratings of eight orientations with noise, one channel."""
    label = torch.randint(0, CLASSES, (count,))
    angle = label * (torch.pi / CLASSES) + 0.05 * torch.randn(count)
    axis = torch.linspace(-1, 1, SIDE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    wave = x[None] * angle.cos()[:, None, None] + y[None] * angle.sin()[:, None, None]
    image = torch.sin(18 * wave + 6.28 * torch.rand(count)[:, None, None])
    return (image + 0.5 * torch.randn_like(image))[:, None], label


class TextureNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 5, padding=2)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.conv3 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.conv4 = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.fc = nn.Linear(2 * width, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.conv3(x))
        x = F.relu(self.conv4(x))
        return self.fc(x.mean((2, 3)))


train_x, train_y = textures(2048)
test_x, test_y = textures(256)
net = TextureNet().to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
batch_size, epochs = 32, 4

for epoch in range(epochs):
    started = time.time()
    net.train()
    running = 0.0
    for index in torch.randperm(len(train_x)).split(batch_size):
        x = train_x[index].contiguous(memory_format=torch.channels_last)
        loss = F.cross_entropy(net(x), train_y[index])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        running += loss.item()
    seconds = time.time() - started
    net.eval()
    with torch.no_grad():
        accuracy = (net(test_x).argmax(1) == test_y).float().mean().item()
    print(
        f"epoch {epoch + 1}/{epochs}: loss {running * batch_size / len(train_x):.4f}, "
        f"accuracy {accuracy:.3f}, {len(train_x) / seconds:.0f} images/s",
        flush=True,
    )
