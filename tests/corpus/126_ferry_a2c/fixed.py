"""Advantage actor-critic that steers a cable-less ferry across a river with currents."""

import argparse
import math
import time

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical


class Ferry:
    """Reach the landing on the other bank; the current changes along the way."""

    actions = 3

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.x, self.y, self.heading, self.t = 0.0, float(self.rng.uniform(-1, 1)), 0.0, 0
        self.flow = float(self.rng.uniform(-0.6, 0.6))
        return self.observe()

    def observe(self):
        return np.array(
            [self.x, self.y, math.sin(self.heading), math.cos(self.heading), self.flow],
            dtype=np.float32,
        )

    def step(self, action):
        self.t += 1
        self.heading = max(-1.2, min(1.2, self.heading + 0.2 * (action - 1)))
        before = math.hypot(2 - self.x, self.y)
        current = self.flow * math.sin(math.pi * self.x / 2)
        self.x += 0.08 * math.cos(self.heading)
        self.y += 0.08 * math.sin(self.heading) + 0.08 * current
        after = math.hypot(2 - self.x, self.y)
        done = self.x >= 2 or self.t >= 60
        reward = before - after - (abs(self.y) if done else 0.0)
        return (self.reset() if done else self.observe()), reward, done


class Envs:
    def __init__(self, n):
        self.envs = [Ferry(k) for k in range(n)]

    def reset(self):
        return np.stack([env.reset() for env in self.envs])

    def step(self, actions):
        answers = [env.step(int(action)) for env, action in zip(self.envs, actions)]
        states, rewards, dones = zip(*answers)
        return np.stack(states), np.array(rewards, np.float32), np.array(dones, np.float32)

    def close(self):
        pass


class ActorCritic(nn.Module):
    def __init__(self, size=96):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, size), nn.Tanh(), nn.Linear(size, size), nn.Tanh())
        self.policy = nn.Linear(size, Ferry.actions)
        self.value = nn.Linear(size, 1)

    def forward(self, x):
        h = self.body(x)
        return self.policy(h), self.value(h).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--horizon", type=int, default=32)
    parser.add_argument("--updates", type=int, default=240)
    parser.add_argument("--gamma", type=float, default=0.98)
    parser.add_argument("--report", type=int, default=30)
    args = parser.parse_args()

    torch.manual_seed(8)
    envs = Envs(args.envs)
    net = ActorCritic()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    state = torch.from_numpy(envs.reset())
    since, gained = time.time(), 0.0
    for update in range(1, args.updates + 1):
        states, actions, rewards, dones = [], [], [], []
        for _ in range(args.horizon):
            with torch.no_grad():
                action = Categorical(logits=net(state)[0], validate_args=False).sample()
            following, reward, done = envs.step(action.numpy())
            states.append(state)
            actions.append(action)
            rewards.append(torch.from_numpy(reward))
            dones.append(torch.from_numpy(done))
            state = torch.from_numpy(following)
        with torch.no_grad():
            value = net(state)[1]
        returns = []
        for reward, done in zip(reversed(rewards), reversed(dones)):
            value = reward + args.gamma * (1 - done) * value
            returns.insert(0, value)
        goal = torch.cat(returns)
        logits, values = net(torch.cat(states))
        chosen = Categorical(logits=logits, validate_args=False)
        advantage = (goal - values).detach()
        loss = -(chosen.log_prob(torch.cat(actions)) * advantage).mean()
        loss = loss + 0.5 * (goal - values).square().mean() - 0.01 * chosen.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        gained += torch.stack(rewards).mean().item() / args.report
        if update % args.report == 0:
            took = time.time() - since
            print(
                f"update {update} reward {gained:.4f} loss {loss.item():.3f} took {took:.2f} s",
                flush=True,
            )
            since, gained = time.time(), 0.0
    envs.close()


if __name__ == "__main__":
    main()
