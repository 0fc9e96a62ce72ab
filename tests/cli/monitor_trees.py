#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trees of the training monitor as a training would have left them, of any size, from a seed.

usage: monitor_trees.py FOLDER [--layers N] [--steps N] [--seed N] [--rounding N] [--spike STEP] [--quantities a,b]

Two trees of one seed and different --rounding are the same training twice: they differ by rounding, which grows.
With --spike the learning rate of a third of the layers is too large in that step, and the training blows up.
"""

import argparse
import json
import math
import pathlib
import random

OPS = ("norm", "min", "max", "mean", "nans")
MODULE_QUANTITIES = ("actv", "actv_grad")
QUANTITIES = ("actv", "actv_grad", "grad_unreduced", "grad_reduced", "exp_avg", "exp_avg_sq", "param_origin", "param_updated")
STEADY = ("param_origin", "param_updated")
MOMENTS = ("exp_avg", "exp_avg_sq")  # that the step before left
GROWTH = 40  # steps in which a difference of rounding grows tenfold
NAN_AFTER = 9  # steps from the spike to the first NaN


def spell(value):
    """As the monitor's csv has it, rounded to six digits behind the point."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(round(value, 6))


class Training:
    """The numbers of a run. `seed` is the model and its data, `rounding` what differs from one run of it to the next."""

    def __init__(self, layers, steps, seed=0, rounding=0, spike=None, hit=None):
        self.layers, self.steps, self.spike = layers, steps, spike
        self.hit = range(layers // 3, 2 * layers // 3) if hit is None else hit
        self.common = random.Random(f"data {seed}")
        self.own = random.Random(f"rounding {seed} {rounding}")
        self.scales = [10 ** self.common.uniform(-2, 0.5) for _ in range(layers)]
        self.walks = [0.0] * layers
        self.loss = 0.0

    def advance(self, step):
        """All that the step needs; steps come in order."""
        self.apart = min(0.02, 1e-7 * 10 ** (step / GROWTH))
        self.batch = self.common.gauss(0, 0.1)
        self.loss = (2.5 + 8 / (1 + step / 80) + 0.4 * self.batch) * (1 + 0.2 * self.apart * self.own.gauss(0, 1))
        self.since = -1 if self.spike is None else step - self.spike
        if self.since > 0:
            self.loss += min(0.8 * self.since, 12.0)
            if self.since > NAN_AFTER:
                self.loss = math.nan
        self.walks = [walk + 1e-3 * self.apart * self.own.gauss(0, 1) for walk in self.walks]

    def norm(self, quantity, layer, step):
        scale = self.scales[layer]
        near = 1 if layer in self.hit else math.exp(-abs(layer - self.hit[len(self.hit) // 2]) / max(1, self.layers / 6))
        blown = self.since - (0 if layer in self.hit else 1) - (quantity in MOMENTS)
        if quantity in STEADY:
            at = step if quantity == "param_updated" else step - 1
            value = 20 * scale * (1 + 2e-3 * math.sqrt(at + 1) + self.walks[layer])
            if self.spike is not None and at >= self.spike and layer in self.hit:
                value *= 1.5 + 0.1 * (at - self.spike)
        else:
            noise = self.batch + self.common.gauss(0, 0.15)
            value = scale / math.sqrt(1 + step / 60) * math.exp(noise + self.apart * self.own.gauss(0, 1))
            if quantity == "exp_avg_sq":
                value *= value * 0.1
            if blown > 0:
                value *= 1 + near * 3**min(blown, 12)
        late = NAN_AFTER + (quantity in MOMENTS) + 3 * (quantity in STEADY)
        return math.nan if self.since > late and (near > 0.5 or self.since > late + 3) else value

    def row(self, quantity, layer, step):
        norm = self.norm(quantity, layer, step)
        if math.isnan(norm):
            return [norm, norm, norm, norm, 4096]
        skew = 0.5 + 0.4 * math.sin(layer)
        return [norm, -norm * 0.05 * (1 + 0.1 * skew), norm * 0.06, norm * 1e-3 * (skew - 0.5), 0]


def names(quantity, layer):
    if quantity in MODULE_QUANTITIES:
        return f"layers.{layer // 2}.{('attention', 'mlp')[layer % 2]}.output"
    return f"layers.{layer // 2}.{('attention', 'mlp')[layer % 2]}.weight"


def write_tree(base, training, quantities=QUANTITIES, rank=0, per_file=1000, alerts=True, skip=(), first=0):
    """A tree of layout v1 with the steps from `first` on, but those in `skip`."""
    folder = pathlib.Path(base) / f"Jan01_00-00-0{rank % 10}-rank{rank}-0000000{rank % 10}"
    folder.mkdir(parents=True)
    found = {}
    files = {}
    for step in range(training.steps):
        training.advance(step)
        for quantity in quantities:
            begin = step - step % per_file
            lines = []
            micro = ",0" if quantity in MODULE_QUANTITIES else ""
            for layer in range(training.layers):
                row = training.row(quantity, layer, step)
                text = ",".join(spell(value) for value in row)
                name = names(quantity, layer)
                lines.append(f'0,{name},{step}{micro},{text},"[64, 64]",torch.float32\n')
                if alerts and math.isnan(row[0]) and step >= first and (quantity, layer) not in found:
                    found[quantity, layer] = alert(rank, step, quantity, name, len(found))
            if quantity == "actv":
                loss = spell(training.loss)
                lines.append(f"0,loss.output,{step},0,{loss},{loss},{loss},{loss},{int(math.isnan(training.loss))},[],torch.float32\n")
            if step < first or step in skip:
                continue
            if quantity not in files or files[quantity][0] != begin:
                path = folder / f"{quantity}_{begin}-{begin + per_file - 1}.csv"
                files[quantity] = (begin, path.open("w"))
                files[quantity][1].write(f"vpp_stage,name,step{',micro_step' if micro else ''},{','.join(OPS)},shape,dtype\n")
            files[quantity][1].writelines(lines)
    for _, file in files.values():
        file.close()
    if found:
        place = pathlib.Path(base) / "anomaly_detected" / f"rank{rank}"
        place.mkdir(parents=True)
        (place / "anomaly.json").write_text(json.dumps(dict(found.values()), indent=1))
    return base


def alert(rank, step, quantity, name, call):
    tag = f"0:{name}:0/rank{rank}/{quantity}" if quantity in MODULE_QUANTITIES else f"0:{name}/rank{rank}/{quantity}"
    message = f"Rule AnomalyNan reports anomaly signal in ('{tag}', 'norm') at step {step}, current value nan, history mean 1.0."
    return f"{tag}_step_{step}_call_{call}", {
        "rank": rank, "step": step, "micro_step": 0, "pp_stage": 0, "vpp_stage": 0, "call_id": call,
        "tag_name": tag, "message": message, "group_mates": [0],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=48)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounding", type=int, default=0)
    parser.add_argument("--spike", type=int)
    parser.add_argument("--quantities", default=",".join(QUANTITIES))
    asked = parser.parse_args()
    training = Training(asked.layers, asked.steps, asked.seed, asked.rounding, asked.spike)
    write_tree(asked.folder, training, asked.quantities.split(","))


if __name__ == "__main__":
    main()
