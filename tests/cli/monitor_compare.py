#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two monitored trainings compared: who parts first, what is not compared, and every row of the table against the rule
written down once more, slowly.

usage: monitor_compare.py MSPROBE
"""

import csv
import io
import math
import random
import statistics

import monitor_trees
from harness import check, check_equal, main_of_script, run

TOLERANCE, LASTING, WINDOW, REFRESH, SHIFT = 8, 5, 64, 16, 16
QUANTITIES = ("actv", "grad_reduced", "param_updated")


def upper_median(values):
    return statistics.median_high(values)


def size(values):
    """The standard deviation that the absolute values suggest."""
    values = sorted(abs(value) for value in values)
    if not values:
        return 0.0
    return max(1.4826 * upper_median(values), 0.51 * values[(len(values) - 1) * 95 // 100], 0.4 * values[-1])


def changes(values):
    return [b - a for a, b in zip(values, values[1:]) if math.isfinite(b - a)]


def scatter(values):
    if len(values) < 2:
        return 0.0
    middle = upper_median(values)
    return size([value - middle for value in values])


def way(values, distance):
    starts = range(0, len(values) - distance, max(1, (len(values) - distance) // 64))
    lengths = [abs(values[i + distance] - values[i]) for i in starts]
    lengths = [length for length in lengths if math.isfinite(length)]
    return 1.4826 * upper_median(lengths) if len(lengths) > 1 else 0.0


def reach(values):
    if len(values) < 2:
        return 0.0
    first, distance, farthest = way(values, 1), 2, 0.0
    farthest = first
    while distance <= len(values) // 2:
        farthest = max(farthest, min(way(values, distance), first * math.sqrt(distance)))
        distance *= 2
    return farthest


def judge(a, b, rounding=1e-6, resolution=1e-6):
    """(result, place) of two series, by the words of the manual page."""
    same = [x == y or (math.isnan(x) and math.isnan(y)) for x, y in zip(a, b)]
    if all(same):
        return "identical", None
    numbers = [x for x in a + b if math.isfinite(x)]
    logs = bool(numbers) and (min(numbers) > 0 or max(numbers) < 0)
    bend = (lambda x: math.log(abs(x)) if math.isfinite(x) else x) if logs else (lambda x: x)
    plain, a, b = a, [bend(x) for x in a], [bend(x) for x in b]
    least = [max(rounding, resolution / abs(plain[i])) if logs and plain[i] else max(rounding * max(abs(a[i]), abs(b[i])), resolution) for i in range(len(a))]
    finite = [math.isfinite(x) and math.isfinite(y) for x, y in zip(a, b)]
    apart = [y - x for x, y in zip(a, b)]
    settled, passing = 0.0, None

    def before(values, place, most):
        block = place // REFRESH * REFRESH
        return values[: REFRESH + 1] if block == 0 else values[max(0, block - most) : block]

    def lasts(place, origin, fluctuation):
        seen = beyond = 0
        for i in range(place, min(len(a), place + LASTING)):
            if not finite[i]:
                break
            seen += 1
            beyond += abs(apart[i] - origin) > TOLERANCE * max(fluctuation, least[i])
        return beyond + 1 >= seen and beyond >= min(seen, 2)

    def stays_away(place, origin, fluctuation):
        sign = 1 if apart[place] > origin else -1
        steps = range(place, min(len(a), place + SHIFT))
        away = sum(finite[i] and sign * (apart[i] - origin) > max(fluctuation, least[i]) for i in steps)
        return len(steps) == SHIFT and away >= SHIFT - 1

    for i in range(len(a)):
        if not finite[i]:
            if math.isfinite(a[i]) or math.isfinite(b[i]) or not same[i]:
                return "parted", i
            continue
        own = max(min(scatter(changes(before(side, i, WINDOW))) for side in (a, b)), least[i])
        move = abs(apart[i] - settled)
        growth = size(changes(apart[max(0, i - REFRESH) : i])) if move > own else 0.0
        jump = max(own, growth)
        if abs(apart[i] - settled) > TOLERANCE * jump:
            if lasts(i, settled, jump):
                return "parted", i
            passing = i if passing is None else passing
        if move > own and move > TOLERANCE * max(growth, least[i]) and stays_away(i, settled, own):
            return "parted", i
        if move <= TOLERANCE * jump:
            settled = apart[i]
        if abs(apart[i]) > TOLERANCE * jump:
            drift = max(jump, min(reach(before(side, i, len(a))) for side in (a, b)))
            if abs(apart[i]) > TOLERANCE * drift:
                if lasts(i, 0.0, drift):
                    return "parted", i
                passing = i if passing is None else passing
    return ("within fluctuation", None) if passing is None else ("passing", passing)


def trees(folder, layers=12, steps=260, **runs):
    """Trees by name; the keywords of Training of each."""
    for name, more in runs.items():
        training = monitor_trees.Training(layers, steps, **more)
        monitor_trees.write_tree(folder / name, training, QUANTITIES, per_file=100, alerts=False)


def series_of(tree):
    """(quantity, name, statistic) -> step -> value."""
    found = {}
    for file in sorted(tree.glob("*-rank0-*/*.csv")):
        quantity = file.name.rsplit("_", 1)[0]
        with file.open() as rows:
            for row in csv.DictReader(rows):
                for statistic in monitor_trees.OPS:
                    found.setdefault((quantity, row["name"], statistic), {})[int(row["step"])] = float(row[statistic])
    return found


def table(msprobe, scratch, *arguments, status=0):
    result = run(msprobe, ["-q", "monitor", "compare", *arguments, "-o", "-"], scratch)
    check_equal("exit status", result.returncode, status)
    return list(csv.DictReader(io.StringIO(result.stdout)))


def answer(msprobe, scratch, *arguments, status=0):
    result = run(msprobe, ["monitor", "compare", *arguments], scratch)
    check_equal("exit status", result.returncode, status)
    check_equal("not judged", result.stderr.startswith("msprobe: error: not judged: "), status == 2)
    check(status == 2 or not result.stderr, result.stderr)
    return result.stdout.splitlines()


def write_series(folder, values, quantity="grad_reduced", names=("w",), head="vpp_stage,name,step,norm,shape,dtype", first=0):
    rank = folder / "Jan01_00-00-00-rank0-00000000"
    rank.mkdir(parents=True, exist_ok=True)
    rows = [f'0,{name},{step + first},{value!r},"[4]",torch.float32' for step, value in enumerate(values) for name in names]
    (rank / f"{quantity}_0-99999.csv").write_text("\n".join([head, *rows]) + "\n")


def rows_agree_with_the_rule(msprobe, scratch):
    trees(scratch, one={}, two={"rounding": 1}, bad={"rounding": 2, "spike": 150}, other={"seed": 5})
    for second in ("two", "bad", "other"):
        ours, theirs = series_of(scratch / "one"), series_of(scratch / second)
        rows = table(msprobe, scratch, "one", second, "--statistics", "norm,min,max")
        check_equal("rows", len(rows), sum(key[2] in ("norm", "min", "max") for key in ours))
        results = set()
        for row in rows:
            key = row["Quantity"], row["Name"], row["Statistic"]
            steps = sorted(ours[key])
            result, place = judge([ours[key][step] for step in steps], [theirs[key][step] for step in steps])
            check_equal(f"{second}, {key}", (row["Result"], row["Step"]), (result, "" if place is None else str(steps[place])))
            results.add(result)
        check_equal(second, "parted" in results, second != "two")


def noise_agrees_with_the_rule(msprobe, scratch):
    """Series of many kinds, one a name, so that jumps, drifts and passing ones all occur."""
    for seed in range(12):
        rng = random.Random(seed)
        runs = [[], []]
        walk = [0.0, 0.0]
        for step in range(200):
            shared = rng.gauss(0, 1)
            for side in (0, 1):
                own = rng.gauss(0, 1)
                walk[side] += shared + (0.4 if seed % 3 == 0 else 0.05) * own
                spike = 30 if side == 1 and seed % 4 == 1 and step in (90, 91) else 0
                drift = 0.3 * max(0, step - 60) if side == 1 and seed % 4 == 2 else 0
                mixed = shared + 0.1 * own
                mixed += 2.5 if side == 1 and seed % 4 == 3 and step >= 120 else 0
                value = [mixed, 10 + walk[side], math.exp(mixed), 100 + mixed][seed // 3]
                runs[side].append(round(value + spike + drift, 6))
        for side in (0, 1):
            write_series(scratch / f"run{side}", runs[side])
        (row,) = table(msprobe, scratch, "run0", "run1")
        result, place = judge(*runs)
        check_equal(f"seed {seed}", (row["Result"], row["Step"]), (result, "" if place is None else str(place)))


def most_of_a_quantity_at_once(msprobe, scratch):
    """Parameters whose learning rate is another one from step 3 on: each fluctuates by more than it is apart there."""
    names = ["a.w", "b.w", "c.w", "d.w"]
    rng = random.Random(1)
    walks = dict.fromkeys(names, 1.0)
    steps = [[(name, 1e-3 * rng.choice((1, -1)) * rng.uniform(1, 2)) for name in names] for _ in range(12)]
    gradients = [rng.uniform(1, 2) for _ in range(12)]

    def write(folder, factor, of=names, gradient=1.0):
        values, parameters = dict(walks), []
        for step, changes in enumerate(steps):
            for name, change in changes:
                values[name] += change * (factor if step >= 3 and name in of else 1)
                parameters.append(f'0,{name},{step},{values[name]!r},"[4]",torch.float32')
        write_series(scratch / folder, [g * (gradient if step >= 6 else 1) for step, g in enumerate(gradients)], names=names)
        rank = next((scratch / folder).iterdir())
        (rank / "param_updated_0-99.csv").write_text("\n".join(["vpp_stage,name,step,norm,shape,dtype", *parameters]) + "\n")

    write("good", 1)
    write("bad", 1.5, gradient=1.1)  # gradients follow, later
    lines = answer(msprobe, scratch, "good", "bad", "--fail-on", "parted", status=1)
    check(lines[0].startswith("The runs part at step 3: param_updated of a.w is "), lines[0])
    check("(norm, equal before; the difference is 0.5 times what the step changes)" in lines[0], lines[0])
    check(lines[1].startswith("The gradients of the step had not parted"), lines[1])
    rows = [row for row in table(msprobe, scratch, "good", "bad") if row["Quantity"] == "param_updated"]
    check_equal("steps", {(row["Result"], row["Step"]) for row in rows}, {("parted", "3")})
    write("one", 1.5, of=names[:1])  # one alone may be rounding
    check(not any(row["Step"] == "3" for row in table(msprobe, scratch, "good", "one")), "one tensor alone")


def gradients_of_rounding(msprobe, scratch):
    """The bias of attention's keys: its gradient is noise, and so is what Adam makes of it."""
    for folder, seed in (("one", 1), ("two", 2)):
        rng = random.Random(seed)
        rank = scratch / folder / "Jan01_00-00-00-rank0-00000000"
        rank.mkdir(parents=True)
        head = "vpp_stage,name,step,norm,shape,dtype"
        gradients = [f'0,{name},{step},{value!r},"[4]",torch.float32' for step in range(40)
                     for name, value in (("w", 1 + step / 10), ("k.bias", 1e-9 * rng.uniform(1, 2)))]
        walk, parameters = 0.0, []
        for step in range(40):
            walk += 1e-3 * (1 if folder == "one" else -1)
            parameters.append(f'0,k.bias,{step},{1 + walk!r},"[4]",torch.float32')
        (rank / "grad_reduced_0-99.csv").write_text("\n".join([head, *gradients]) + "\n")
        (rank / "param_updated_0-99.csv").write_text("\n".join([head, *parameters]) + "\n")
    lines = answer(msprobe, scratch, "one", "two", "--fail-on", "parted")
    check(lines[0].startswith("Both runs stay within their own fluctuation"), lines[0])
    check("not judged: 1 parameter whose gradients are rounding alone, the first k.bias" in lines, lines)


main_of_script()
