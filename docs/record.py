import sys
from msprobe.pytorch import PrecisionDebugger, seed_all
import torch

seed_all(1)
gelu = torch.nn.GELU(approximate=sys.argv[2])
model = torch.nn.Sequential(torch.nn.Linear(64, 64), gelu, torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
debugger = PrecisionDebugger(dump_path=sys.argv[1], task="tensor", level="mix")
for _ in range(2):
    debugger.start(model)
    optimizer.zero_grad()
    model(torch.randn(16, 64)).square().mean().backward()
    optimizer.step()
    debugger.stop()
    debugger.step()
