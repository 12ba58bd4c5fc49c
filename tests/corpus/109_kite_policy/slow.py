# REINFORCE: keep a kite at the right height by pulling or giving line.
import math
import random
import time

import torch
from torch import nn

random.seed(5)
torch.manual_seed(5)

GAMMA = 0.99
EPISODE = 1500
EPISODES = 90


class Kite:
    def reset(self):
        self.height, self.speed, self.line, self.wind = 40.0, 0.0, 60.0, 8.0
        self.t = 0
        return self.state()

    def state(self):
        return [
            self.height / 50 - 1,
            self.speed / 5,
            self.line / 60 - 1,
            self.wind / 8 - 1,
            math.sin(self.t / 50),
        ]

    def step(self, action):
        self.t += 1
        self.wind += 0.1 * (8 + 2 * math.sin(self.t / 50) - self.wind) + random.gauss(0, 0.3)
        self.line = min(90.0, max(20.0, self.line + (action - 1) * 1.0))
        lift = 0.02 * self.wind**2 * (1 - self.height / (self.line + 10))
        self.speed = 0.9 * self.speed + lift - 0.5
        self.height = min(self.line, max(0.0, self.height + 0.2 * self.speed))
        return self.state(), 1 - abs(self.height - 50) / 25


policy = nn.Sequential(nn.Linear(5, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
env = Kite()


def play():
    states, actions, rewards = [], [], []
    state = env.reset()
    for _ in range(EPISODE):
        with torch.no_grad():
            p = policy(torch.tensor(state)).softmax(-1).tolist()
        action = random.choices((0, 1, 2), p)[0]
        states.append(state)
        actions.append(action)
        state, reward = env.step(action)
        rewards.append(reward)
    return torch.tensor(states), torch.tensor(actions), rewards


def discounted(rewards):
    returns = []
    for t in range(len(rewards)):
        returns.append(sum(GAMMA**k * r for k, r in enumerate(rewards[t:])))
    return torch.tensor(returns)


clock = time.time()
for episode in range(1, EPISODES + 1):
    states, actions, rewards = play()
    returns = discounted(rewards)
    advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
    log_p = policy(states).log_softmax(-1).gather(1, actions[:, None])[:, 0]
    loss = -(log_p * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 10 == 0:
        now = time.time()
        print(
            f"episode {episode} mean reward {sum(rewards) / EPISODE:.3f} ({now - clock:.2f} s)",
            flush=True,
        )
        clock = now
