"""Double DQN that sends a lift to waiting people; begins with the logs of the old controller."""

import argparse
import random
import time
from collections import namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

Transition = namedtuple("Transition", "state action reward next_state")
FLOORS = 10


class ReplayBuffer:
    def __init__(self, capacity):
        self.memory, self.capacity, self.at = [], capacity, 0

    def push(self, *args):
        if len(self.memory) < self.capacity:
            self.memory.append(Transition(*args))
        else:
            self.memory[self.at] = Transition(*args)
        self.at = (self.at + 1) % self.capacity

    def sample(self, n):
        return Transition(*zip(*random.sample(self.memory, n)))

    def __len__(self):
        return len(self.memory)


class Lift:
    """Go down, stay or go up; people wait at one floor at a time."""

    def reset(self):
        self.at, self.call, self.waited = random.randrange(FLOORS), random.randrange(FLOORS), 0
        return self.state()

    def state(self):
        return (self.at / FLOORS, self.call / FLOORS, self.waited / 20, (self.call - self.at) / 5)

    def step(self, action):
        self.at = min(FLOORS - 1, max(0, self.at + action - 1))
        self.waited += 1
        reward = -0.05 * self.waited
        if self.at == self.call:
            reward += 1.0
            self.call, self.waited = random.randrange(FLOORS), 0
        self.waited = min(self.waited, 20)
        return self.state(), reward


def old_logs(n, seed):
    """Transitions of the old controller, which often goes the wrong way."""
    rng = np.random.default_rng(seed)
    at, call = rng.integers(0, FLOORS, n), rng.integers(0, FLOORS, n)
    waited, action = rng.integers(0, 20, n), rng.integers(0, 3, n)
    new = np.clip(at + action - 1, 0, FLOORS - 1)
    there = new == call
    call2 = np.where(there, rng.integers(0, FLOORS, n), call)
    waited2 = np.where(there, 0, np.minimum(waited + 1, 20))
    reward = there - 0.05 * (waited + 1)
    before = np.stack([at / FLOORS, call / FLOORS, waited / 20, (call - at) / 5], 1)
    after = np.stack([new / FLOORS, call2 / FLOORS, waited2 / 20, (call2 - new) / 5], 1)
    return zip(before.tolist(), action.tolist(), reward.tolist(), after.tolist())


def qnet():
    return nn.Sequential(
        nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 3)
    )


def optimize(policy, target, memory, optimizer, args):
    batch = memory.sample(args.batch_size)
    state = torch.tensor(batch.state)
    action = torch.tensor(batch.action).unsqueeze(1)
    reward = torch.tensor(batch.reward)
    next_state = torch.tensor(batch.next_state)

    q = policy(state).gather(1, action).squeeze(1)
    with torch.no_grad():
        best = policy(next_state).argmax(1, keepdim=True)
        goal = reward + args.gamma * target(next_state).gather(1, best).squeeze(1)
    loss = F.smooth_l1_loss(q, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--length", type=int, default=120)
    parser.add_argument("--logs", type=int, default=500_000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--gamma", type=float, default=0.97)
    args = parser.parse_args()

    random.seed(4)
    torch.manual_seed(4)
    memory = ReplayBuffer(600_000)
    for transition in old_logs(args.logs, 4):
        memory.push(*transition)
    print(f"{len(memory)} transitions from the logs", flush=True)

    env = Lift()
    policy, target = qnet(), qnet()
    target.load_state_dict(policy.state_dict())
    optimizer = torch.optim.Adam(policy.parameters(), lr=5e-4)
    steps = 0
    for episode in range(args.episodes):
        state, total, losses, t0 = env.reset(), 0.0, [], time.time()
        for _ in range(args.length):
            eps = max(0.05, 0.5 - steps / 4000)
            if random.random() < eps:
                action = random.randrange(3)
            else:
                with torch.no_grad():
                    action = policy(torch.tensor(state)).argmax().item()
            next_state, reward = env.step(action)
            memory.push(state, action, reward, next_state)
            state, total = next_state, total + reward
            losses.append(optimize(policy, target, memory, optimizer, args))
            steps += 1
            if steps % 250 == 0:
                target.load_state_dict(policy.state_dict())
        print(
            f"episode {episode:3d} return {total:7.2f} loss {np.mean(losses):.4f} "
            f"eps {eps:.2f} {args.length / (time.time() - t0):.1f} steps/s",
            flush=True,
        )
