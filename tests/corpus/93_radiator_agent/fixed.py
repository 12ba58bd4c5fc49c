"""Q-learning for the radiators of a school: which room is heated in the next five minutes?"""

import collections
import time

import numpy as np
import torch
from torch import nn

ROOMS, HISTORY = 12, 8
ACTIONS = ROOMS + 1


class School:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.leak = self.rng.uniform(0.01, 0.04, ROOMS)
        self.reset()

    def reset(self):
        self.clock = 0
        self.outside = self.rng.uniform(-5, 10)
        self.rooms = self.rng.uniform(15, 23, ROOMS)
        self.past = collections.deque([self.rooms] * HISTORY, maxlen=HISTORY)
        return self.observe()

    def observe(self):
        return ((np.concatenate(self.past) - 20) / 5).astype(np.float32)

    def step(self, action):
        self.clock += 1
        self.outside += self.rng.normal(0, 0.1)
        self.rooms = self.rooms + self.leak * (self.outside - self.rooms)
        if action < ROOMS:
            self.rooms[action] += 2.5
        self.past.append(self.rooms.copy())
        reward = -np.abs(self.rooms - 20).mean() / 5
        return self.observe(), reward, self.clock == 120


class Memory:
    """The latest transitions, in a ring."""

    def __init__(self, capacity, size):
        self.capacity, self.count, self.place = capacity, 0, 0
        self.states = np.zeros((capacity, size), np.float32)
        self.following = np.zeros((capacity, size), np.float32)
        self.actions = np.zeros(capacity, np.int64)
        self.rewards = np.zeros(capacity, np.float32)
        self.ends = np.zeros(capacity, np.float32)

    def add(self, **transition):
        for name, value in transition.items():
            getattr(self, name)[self.place] = value
        self.place = (self.place + 1) % self.capacity
        self.count = min(self.count + 1, self.capacity)

    def draw(self, rng, size):
        rows = rng.integers(0, self.count, size)
        columns = self.states, self.actions, self.rewards, self.following, self.ends
        return [torch.from_numpy(column[rows]) for column in columns]


def q_network(width=1024):
    return nn.Sequential(
        nn.Linear(ROOMS * HISTORY, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, ACTIONS),
    )


def learn(online, target, optimizer, batch, discount=0.97):
    states, actions, rewards, following, ends = batch
    with torch.no_grad():
        best = target(following).amax(1)
    wanted = rewards + discount * (1 - ends) * best
    value = online(states).gather(1, actions[:, None]).squeeze(1)
    loss = nn.functional.smooth_l1_loss(value, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main(updates=300, moves=8, batch_size=128):
    torch.manual_seed(115)
    rng = np.random.default_rng(115)
    school, memory = School(115), Memory(30_000, ROOMS * HISTORY)
    online, target = q_network(), q_network()
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=3e-4)
    state, rewards, start = school.reset(), [], time.time()
    for update in range(1, updates + 1):
        for _ in range(moves):
            action = int(rng.integers(ACTIONS))
            if rng.random() > max(0.05, 1 - 2 * update / updates):
                with torch.no_grad():
                    action = int(online(torch.from_numpy(state)).argmax())
            following, reward, end = school.step(action)
            memory.add(
                states=state, actions=action, rewards=reward, following=following, ends=end
            )
            rewards.append(reward)
            state = school.reset() if end else following
        loss = learn(online, target, optimizer, memory.draw(rng, batch_size))
        if update % 50 == 0:
            target.load_state_dict(online.state_dict())
            mean, took = np.mean(rewards[-400:]), time.time() - start
            print(f"update {update} loss {loss:.4f} return {mean:.3f} {took:.2f} s", flush=True)
            start = time.time()


if __name__ == "__main__":
    main()
