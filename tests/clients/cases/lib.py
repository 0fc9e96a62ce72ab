# SPDX-License-Identifier: Apache-2.0
"""Helpers for the client scripts: a tiny model, and what a dump folder holds."""
import json, os, re, sys, traceback
import torch

class Block(torch.nn.Module):
    def __init__(self, n=8):
        super().__init__()
        self.fc1 = torch.nn.Linear(n, n)
        self.act = torch.nn.ReLU()
        self.fc2 = torch.nn.Linear(n, n)
    def forward(self, x):
        return x + self.fc2(self.act(self.fc1(x)))

class Tiny(torch.nn.Module):
    def __init__(self, n=8, layers=2):
        super().__init__()
        self.layers = torch.nn.ModuleList(Block(n) for _ in range(layers))
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

def train(model, x=None):
    x = torch.randn(4, 8) if x is None else x
    loss = model(x).square().mean()
    loss.backward()
    model.zero_grad()
    return loss

def forward(model, x=None):
    with torch.no_grad():
        return model(torch.randn(4, 8) if x is None else x)

def tree(root):
    root = os.path.abspath(root)
    if not os.path.isdir(root):
        print("  (nothing at %s)" % os.path.basename(root)); return
    for folder, _, files in sorted(os.walk(root)):
        place = re.sub(r"proc\d+", "procPID", os.path.relpath(folder, root))
        place = re.sub(r"(^|/)%d(/|$)" % os.getpid(), r"\1PID\2", place)
        for name in sorted(files):
            if name == "dump.json":
                try:
                    data = json.load(open(os.path.join(folder, name)))["data"]
                    mods = sorted({int(m.group(1)) for k in data for m in [re.search(r"\.(?:forward|backward)\.(\d+)$", k)] if m})
                    print("  %s/dump.json: %d entries%s" % (place, len(data), ", module calls %s" % mods if mods else ""))
                except Exception as e:
                    print("  %s/dump.json: UNREADABLE %r" % (place, e))
            elif name.endswith((".pt", ".npy")) and "dump_tensor_data" in folder:
                pass
            elif name in ("stack.json", "construct.json"):
                pass
            else:
                print("  %s/%s (%d bytes)" % (place, name, os.path.getsize(os.path.join(folder, name))))

def attempt(what, function):
    try:
        value = function()
        print("OK   %s%s" % (what, "" if value is None else ": %s" % (value,)))
        return value
    except BaseException as e:
        print("FAIL %s: %s: %s" % (what, type(e).__name__, str(e)[:300]))
        return None

def config(path, dump_path=None, **more):
    c = {"task": "statistics", "rank": [], "step": [], "level": "L0", "async_dump": False,
         "statistics": {"scope": [], "list": [], "tensor_list": [], "data_mode": ["all"], "summary_mode": "statistics"}}
    if dump_path: c["dump_path"] = dump_path
    c.update(more)
    json.dump(c, open(path, "w"))
    return path
