import random
import time
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

SIZE, CHANNELS = 12, 4
ACTIONS = [(0, 1), (1, 0), (0, -1), (-1, 0)]


class GridWorld:
    """A cleaner on a grid: find the dirt, keep off the furniture, mind the battery."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.reset()

    def reset(self):
        self.walls = (self.rng.random((SIZE, SIZE)) < 0.15).astype(np.float32)
        self.place = self.rng.integers(0, SIZE, 2)
        self.goal = self.rng.integers(0, SIZE, 2)
        self.walls[tuple(self.place)] = self.walls[tuple(self.goal)] = 0
        self.left = 60
        return self.observe()

    def observe(self):
        view = np.zeros((CHANNELS, SIZE, SIZE), dtype=np.float32)
        view[0] = self.walls
        view[1][tuple(self.place)] = 1
        view[2][tuple(self.goal)] = 1
        view[3] = self.left / 60
        return view

    def step(self, action):
        self.left -= 1
        target = self.place + ACTIONS[action]
        free = (target >= 0).all() and (target < SIZE).all() and not self.walls[tuple(target)]
        if free:
            self.place = target
        done = (self.place == self.goal).all()
        reward = 1.0 if done else (-0.01 if free else -0.05)
        return self.observe(), reward, bool(done) or self.left == 0


class ReplayMemory:
    def __init__(self, capacity):
        self.buffer = deque(maxlen=capacity)

    def push(self, *transition):
        self.buffer.append(transition)

    def __len__(self):
        return len(self.buffer)

    def sample(self, size):
        chosen = random.sample(self.buffer, size)
        state, action, reward, following, done = zip(*chosen, strict=True)
        states = torch.tensor([s for s in state])
        next_states = torch.tensor([s for s in following])
        actions = torch.tensor(action)
        rewards = torch.tensor(reward, dtype=torch.float32)
        return states, actions, rewards, next_states, torch.tensor(done).float()


class QNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(CHANNELS, 32, 3, padding=1)
        inside = 8 * SIZE * SIZE
        self.fc = nn.Sequential(nn.Linear(inside, 128), nn.ReLU(), nn.Linear(128, 4))

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv(x)), 2)
        return self.fc(x.flatten(1))


def optimise(policy, target, optimizer, memory, batch_size=64, gamma=0.97):
    batch = memory.sample(batch_size)
    states, actions, rewards, next_states, done = batch
    q = policy(states).gather(1, actions[:, None]).squeeze(1)
    with torch.no_grad():
        best = target(next_states).max(1).values
    loss = nn.functional.smooth_l1_loss(q, rewards + gamma * best * (1 - done))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main(total_steps=700, warmup=200, sync=100):
    torch.manual_seed(0)
    random.seed(0)
    env, memory = GridWorld(0), ReplayMemory(5000)
    policy, target = QNetwork(), QNetwork()
    target.load_state_dict(policy.state_dict())
    optimizer = optim.Adam(policy.parameters(), lr=5e-4)
    state, returns, score, t0 = env.reset(), [], 0.0, time.time()
    for t in range(total_steps):
        if random.random() < max(0.05, 1 - t / total_steps):
            action = random.randrange(4)
        else:
            with torch.no_grad():
                action = int(policy(torch.from_numpy(state)[None]).argmax())
        following, reward, done = env.step(action)
        memory.push(state, action, reward, following, done)
        state, score = following, score + reward
        if done:
            returns.append(score)
            state, score = env.reset(), 0.0
        if len(memory) >= warmup:
            loss = optimise(policy, target, optimizer, memory)
            if t % sync == 0:
                target.load_state_dict(policy.state_dict())
                mean, took = np.mean(returns[-20:]), time.time() - t0
                print(f"{t:6d} loss {loss:.4f} return {mean:.2f} {took:.1f}s", flush=True)


if __name__ == "__main__":
    main()
