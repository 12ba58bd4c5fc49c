"""Behaviour cloning for a humanoid robot: a Gaussian over joint velocities, given the state.

usage: python slow.py [--epochs N] [--noise S]
"""

import argparse
import time

import torch
from torch import nn
from torch.distributions import Independent, Normal

JOINTS = 24


def demonstrations(n, noise, generator):
    state = torch.randn(n, 3 * JOINTS, generator=generator)
    mixing = torch.randn(3 * JOINTS, JOINTS, generator=generator) / (3 * JOINTS) ** 0.5
    clumsy = 0.2 + state[:, :JOINTS].abs()
    action = torch.tanh(state @ mixing) + noise * clumsy * torch.randn(
        n, JOINTS, generator=generator
    )
    return state, action


class GaussianPolicy(nn.Module):
    def __init__(self, hidden=256):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(3 * JOINTS, hidden),
            nn.Tanh(),
            nn.Linear(hidden, hidden),
            nn.Tanh(),
            nn.Linear(hidden, hidden),
            nn.Tanh(),
        )
        self.mean = nn.Linear(hidden, JOINTS)
        self.log_std = nn.Linear(hidden, JOINTS)

    def forward(self, state):
        z = self.body(state)
        std = self.log_std(z).clamp(-4, 2).exp()
        return Independent(Normal(self.mean(z), std), 1)


def nll(policy, state, action):
    return -policy(state).log_prob(action).mean()


def run(args):
    g = torch.Generator().manual_seed(77)
    torch.manual_seed(77)
    state, action = demonstrations(13_000, args.noise, g)
    policy = GaussianPolicy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    for epoch in range(args.epochs):
        t, losses = time.monotonic(), []
        for rows in torch.randperm(12_000, generator=g).split(args.batch_size):
            loss = nll(policy, state[rows], action[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 5.0)
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            held_out = nll(policy, state[12_000:], action[12_000:]).item()
        t, mean = time.monotonic() - t, sum(losses) / len(losses)
        print(
            f"epoch {epoch}: train {mean:.3f} test {held_out:.3f} in {t:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=36)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--noise", type=float, default=0.3)
    run(parser.parse_args())
