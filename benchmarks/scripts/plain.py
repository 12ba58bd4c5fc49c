"""An ordinary training loop that clocks its own steps."""

import parts
from torch import nn

args = parts.arguments()
model = parts.make_model(args.model, args.width)
optimizer = parts.make_optimizer(model, args.model)
loader = parts.make_loader(args.batch, args.workers, args.steps)
criterion = nn.CrossEntropyLoss()
clock = parts.Clock(args.warm_up)
total = 0.0
for points, classes in loader:
    optimizer.zero_grad()
    loss = criterion(model(points), classes)
    loss.backward()
    optimizer.step()
    total += loss.item()
    clock.tick()
clock.write(args.out)
