#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the commands over a monitor's files to the results of the Python tool 26.2: the ranking of alerts, event files,
data bases of trends.

usage: golden_monitor.py MSPROBE GOLDEN_FOLDER
"""

import csv
import json
import math
import os
import pathlib
import re
import shutil
import sqlite3
import struct
from functools import partial

import dumps
import event_file
import harness

UNKNOWN_FIELD = 1  # M3: an alert of the golden ranks that the Python tool leaves out
RANK = "Jan01_00-00-0{}-rank{}-00000000"


def alert_blocks(text):
    """The text of each alert of a file, by its key."""
    blocks = re.split(r'^ "(.*)": \{$', text.removesuffix("\n}\n").removesuffix("\n}"), flags=re.MULTILINE)[1:]
    return {key: block.rstrip(",\n") for key, block in zip(blocks[::2], blocks[1::2])}


def ranking_test(msprobe, case, name, summary, scratch):
    """As many alerts as the Python tool lists, each written as it writes it. Their order is that of analyze_our_order (M1, M2 of
    docs/differences/monitor.md), and --python-rules does not change it."""

    def listed(scratch, source, *options):
        result = harness.run(
            msprobe, ["monitor", "analyze", "-d", source, "-o", "out", "--python-rules", *options], scratch
        )
        harness.check("monitor analyze: --python-rules has no effect" in result.stderr or result.returncode == 2, result.stderr)
        path = scratch / "out" / "anomaly_analyse.json"
        return result.returncode, path.read_text(encoding="utf-8") if path.exists() else ""

    options = summary["options"] if summary["options"] is not None else []
    source = str(case / "anomaly_detected") if summary["options"] is not None else "missing"
    status, text = listed(scratch, source, *options)
    if name == "bad_step":  # M5
        harness.check_equal("exit status", status, 0)
        return
    harness.check_equal("exit status", status, 2 if summary["exit"] else 0)
    if summary["exit"]:
        harness.check_equal("file", text, "")
        return
    found = alert_blocks(text)
    harness.check_equal("alerts", len(found), len(summary["order"]) + (name == "k100") * UNKNOWN_FIELD)
    whole = alert_blocks(listed(scratch, source, *options, "-k", "1000")[1])
    harness.check_equal("the first alerts", list(found), list(whole)[: len(found)])
    harness.check_equal("missing alerts", set(summary["order"]) - set(whole), set())
    expected = case / "results" / name / "anomaly_analyse.json"
    if expected.exists():
        for key, block in alert_blocks(expected.read_text(encoding="utf-8")).items():
            harness.check_equal(key, whole[key], block)


def analyze_gradients_that_never_came(msprobe, scratch):
    """The Python tool's monitor alerts of NaN where no gradient came: its csv has a row without a tensor, or none."""
    rank = scratch / "Jan01_00-00-00-rank0-00000000"
    rank.mkdir()
    head = "vpp_stage,name,step,micro_step,norm,nans,shape,dtype\n"
    rows = "0,.input,0,0,nan,nan,nan,nan\n" '0,b.input,0,0,nan,3.0,"[3, 8]",torch.float32\n'
    (rank / "actv_grad_0-0.csv").write_text(head + rows)
    alerts = {}
    for name, step in ((".input", 0), ("a.input", 0), ("b.input", 0), (".input", 1)):
        tag = f"0:{name}:0/rank0/actv_grad"
        alerts[f"{tag}_step_{step}_call_1"] = {
            "rank": 0, "step": step, "micro_step": 0, "pp_stage": 0, "vpp_stage": 0, "call_id": 1, "tag_name": tag,
            "message": f"Rule AnomalyNan reports anomaly signal in ('{tag}', 'norm') at step {step}, "
                       "current value nan, history mean nan.", "group_mates": [0],
        }
    folder = scratch / "anomaly_detected" / "rank0"
    folder.mkdir(parents=True)
    (folder / "anomaly.json").write_text(json.dumps(alerts))

    def ranked(*options):
        result = harness.run(msprobe, ["monitor", "analyze", "-o", "-", *options], scratch, status=0)
        return [(one["tag_name"], one["step"]) for one in json.loads(result.stdout).values()], result.stderr

    # No file covers step 1, so its alert stays.
    kept = [("0:b.input:0/rank0/actv_grad", 0), ("0:.input:0/rank0/actv_grad", 1)]
    for source in (".", "anomaly_detected"):
        found, told = ranked("-d", source)
        harness.check_equal("alerts", found, kept)
        harness.check("2 alerts of NaN are left out: the csv files show that there was no tensor." in told, told)
    (rank / "actv_grad_0-0.csv").unlink()
    harness.check_equal("without files", len(ranked("-d", ".")[0]), 4)


def analyze_our_order(msprobe, case, scratch):
    """Our order: as a step goes, checked by a slow and plain description of it."""
    parts = ["param_origin exp_avg exp_avg_sq", "actv", "actv_grad pre_grad acc_grad", "post_0", "post_grad",
             "mg_direction", "param_updated"]

    def place(alert):
        task = alert["tag_name"].rsplit("/", 1)[1]
        (part,) = [i for i, tasks in enumerate(parts) if task in tasks.split()]
        name = alert["tag_name"].split("/")[0].split(":")
        last = 1  # of the micro steps in this golden
        micro = 0
        if part in (1, 2):
            micro = int(name[2]) if len(name) > 2 else last
        group = 0 if part == 0 else 1 if part in (1, 2) else 2
        up = -1 if part in (2, 4) else 1
        call = alert["call_id"] if alert["call_id"] >= 0 else math.inf
        return (alert["step"], group, micro, part, up * alert["vpp_stage"], up * alert["pp_stage"], call, alert["rank"])

    result = harness.run(
        msprobe, ["monitor", "analyze", "-d", str(case / "anomaly_detected"), "-o", "-", "-k", "1000"], scratch
    )
    harness.check_equal("exit status", result.returncode, 0)
    alerts = [a for a in json.loads(result.stdout).values() if a["tag_name"]]
    records = {}
    for path in case.glob("anomaly_detected/*/anomaly.json"):
        records.update(json.loads(path.read_text(encoding="utf-8")))
    harness.check_equal("alerts", len(alerts), sum("tag_name" in record for record in records.values()))
    places = [place(alert) for alert in alerts]
    harness.check_equal("order", places, sorted(places))


MESSAGE = re.compile(r"\('([^']*)', '([^']*)'\) at step (\d+), current value (\S+), history mean (\S+)\.")


def told(path):
    """(tag, step) -> (statistic, value, mean) of the messages of an anomaly.json; of several statistics the last."""
    found = {}
    for record in json.loads(path.read_text(encoding="utf-8")).values():
        tag, statistic, step, value, mean = MESSAGE.search(record["message"]).groups()
        harness.check_equal("tag", (tag, int(step)), (record["tag_name"], record["step"]))
        found.setdefault((tag, int(step)), []).append((statistic, float(value), float(mean)))
    return found


def replay_test(msprobe, golden, name, scratch):
    """The alerts that the training told, but for those of gradients that were not there, and with their numbers."""
    case = golden / "alert"
    tree = case / f"out_{name}"
    words = ["monitor", "alerts", "-d", str(tree), "--config", str(case / f"{name}.json"), "-o", "out"]
    harness.check_equal("exit status", harness.run(msprobe, words, scratch).returncode, 0)
    got = told(scratch / "out" / "rank0" / "anomaly.json")
    expected = told(tree / "anomaly_detected" / "rank0" / "anomaly.json")
    absent = {(folder.split("/")[1], tag.removeprefix("vp").replace(":micro", ":"), step)
              for folder, tag, step in absent_points(tree)}
    tasks = {"actv": "actv", "actv_grad": "actv_grad", "post_grad": "grad_reduced"}

    def was_there(key):
        tag, step = key
        series, _, task = tag.split("/")
        return (tasks.get(task, task), series, step) not in absent

    expected = {key: value for key, value in expected.items() if was_there(key)}
    harness.check(expected, "the golden tells nothing")
    harness.check_equal("alerts", sorted(got), sorted(expected))
    for key, ((statistic, value, mean),) in expected.items():
        (ours,) = [one for one in got[key] if one[0] == statistic]
        # The files have six digits behind the point.
        for number, golden_number in ((ours[1], value), (ours[2], mean)):
            same = math.isnan(number) and math.isnan(golden_number)
            harness.check(same or abs(number - golden_number) < 2e-6 or not math.isfinite(golden_number),
                          f"{key}: {number} and not {golden_number}")


def absent_points(tree):
    """(rank folder, quantity, tag without statistic, step) of rows without a tensor."""
    found = set()
    for path in tree.glob("*/*.csv"):
        rank = path.parent.name.split("-rank")[1].split("-")[0]
        quantity = path.stem.rsplit("_", 1)[0]
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row.get("shape") == "nan":
                    micro = f":micro{row['micro_step']}" if "micro_step" in row else ""
                    found.add((f"rank{rank}/{quantity}", f"vp{row['vpp_stage']}:{row['name']}{micro}", int(row["step"])))
    return found


def event_folders(out):
    folders = {}
    for path in sorted(out.glob("*/*/*")):
        folders.setdefault(str(path.parent.relative_to(out)), {}).update(event_file.scalars(path))
    return folders


def same_float(got, expected):
    expected = float(expected)
    return (math.isnan(got) and math.isnan(expected)) or got == expected


def check_events(out, expected, absent):
    """Every value of the Python tool's, and its tags; rows without a tensor have no values here."""
    folders = event_folders(out)
    for folder, tags in expected.items():
        for tag, points in tags.items():
            wanted = [(s, v) for s, v in points if (folder, tag.rsplit("/", 1)[0], s) not in absent]
            got = folders.get(folder, {}).get(tag, [])
            harness.check_equal(f"steps of {folder} {tag}", [s for s, _ in got], [s for s, _ in wanted])
            for (step, value), (_, golden) in zip(got, wanted):
                harness.check(same_float(value, golden), f"{folder} {tag} step {step}: {value} and not {golden}")
    return folders


def made_tree(case, scratch):
    tree = scratch / "made"
    shutil.copytree(case / "in" / "made", tree)
    # The Python tool took the folder that was listed last; ours takes the newest, whichever that was.
    order = [RANK.format(1, 1), RANK.format(0, 1)]
    for age, name in enumerate(order):
        for path in (tree / name).iterdir():
            os.utime(path, (1e9 - 1000 * age, 1e9 - 1000 * age))
    return tree


def csv2tb_a_training(msprobe, golden, scratch):
    source = golden / "micro_steps" / "out_mbs_true"
    harness.run(msprobe, ["monitor", "csv2tb", "-d", str(source), "-o", "out"], scratch, status=0)
    expected = json.loads((golden / "csv2tb" / "scalars.json").read_text(encoding="utf-8"))["real"]
    folders = check_events(scratch / "out", expected, absent_points(source))
    harness.check_equal("folders", sorted(folders), sorted(expected))


def newest_value(tree):
    with next((tree / RANK.format(1, 1)).glob("*.csv")).open(encoding="utf-8", newline="") as file:
        return float(next(csv.DictReader(file))["norm"])


def made_events(msprobe, golden, name, options, scratch):
    case = golden / "csv2tb"
    tree = made_tree(case, scratch)
    result = harness.run(msprobe, ["monitor", "csv2tb", "-d", str(tree), "-o", "out", *options], scratch, status=0)
    expected = json.loads((case / "scalars.json").read_text(encoding="utf-8"))[name]
    for tag, points in expected["rank1/grad_reduced"].items():
        expected["rank1/grad_reduced"][tag] = [[step, newest_value(tree)] for step, _ in points]
    folders = check_events(scratch / "out", expected, set())
    if name != "made":
        return
    # The Python tool lost these values: everything of rank 0 after a repeat in two files.
    harness.check_equal("repeated in a file", folders["rank0/exp_avg"]["vp0:b/norm"], [(0, 2.0)])
    harness.check_equal("repeated in two", folders["rank0/exp_avg_sq"]["vp0:b/norm"], [(0, 2.0)])
    harness.check_equal("behind it", [s for s, _ in folders["rank0/grad_reduced"]["vp0:a.weight/norm"]], [0, 1, 2])
    harness.check_equal("other", folders["rank0/other"]["vp0:b/min"], [(0, 1.0)])
    harness.check("rank 1 has 2 folders" in result.stderr, result.stderr)


def refused_events(msprobe, golden, options, words, scratch):
    tree = made_tree(golden / "csv2tb", scratch)
    result = harness.run(msprobe, ["monitor", "csv2tb", "-d", str(tree), "-o", "out", *options], scratch, status=2)
    for word in words:
        harness.check(word in result.stderr, result.stderr)
    harness.check(not (scratch / "out").exists(), "files were written")


def csv2tb_communication(msprobe, golden, scratch):
    result = harness.run(msprobe, ["monitor", "csv2tb", "-d", str(golden / "ddp" / "out_cc_post"), "-o", "out"], scratch)
    harness.check_equal("exit status", result.returncode, 0)
    folders = event_folders(scratch / "out")
    tags = folders["rank0/comm"]
    harness.check_equal("all_reduce", tags["all_reduce_0/norm"][0], (0, struct_float(179.424079)))
    harness.check_equal("max", tags["all_reduce_0/max"][0], (0, 160.0))
    harness.check_equal("second tensor", tags["all_gather_1/max"][0], (0, 0.0))
    harness.check("broadcast_1/norm" not in tags, "filling at the end of a row became a tensor")


def struct_float(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def load_sql(text):
    connection = sqlite3.connect(":memory:")
    connection.executescript(text)
    return connection


def content(connection):
    """A data base without its numbers for things, which follow no order."""
    columns = [row[1] for row in connection.execute("PRAGMA table_info(trend_data)")]
    metrics = dict(connection.execute("SELECT metric_id, metric_name FROM monitoring_metrics"))
    targets = {row[0]: row[1:] for row in connection.execute("SELECT * FROM monitoring_targets")}
    tags = {row[0]: (row[1], row[2], metrics[row[3]]) for row in connection.execute("SELECT * FROM monitoring_tags")}
    rows = {}
    for row in connection.execute("SELECT * FROM trend_data"):
        named = dict(zip(columns, row))
        key = (named.pop("rank"), named.pop("step"), targets[named.pop("target_id")], metrics[named.pop("metric_id")])
        rows[key] = named
    names = [row[1] for row in connection.execute("PRAGMA table_info(global_stats)")]
    (extremes,) = connection.execute("SELECT * FROM global_stats")
    stats = {name: set(value.split(",")) if isinstance(value, str) else value for name, value in zip(names, extremes)}
    types = {
        table: {
            row[1]: (row[2], row[3], row[5])
            for row in connection.execute(f"PRAGMA table_info({table})")
            if table not in ("trend_data", "global_stats")
        }
        for table in ("monitoring_targets", "monitoring_metrics", "monitoring_tags", "tag_target_mapping")
    }
    # Numbers of targets that ended up without a row are no content.
    used = {key[2] for key in rows}
    return {
        "types": types,
        "metrics": set(metrics.values()),
        "targets": used,
        "tags": set(tags.values()),
        "mapping": {(tags[a], targets[b]) for a, b in connection.execute("SELECT * FROM tag_target_mapping")},
        "rows": rows,
        "extremes": stats,
        "rank first": names.index("max_rank") < names.index("min_step"),
    }


EXTRA_METRICS = {"comm", "linear_hook"}  # M9: files that the Python tool leaves out
EXTRA_STATISTICS = {"sr", "kernel_norm"}
REPEATED = ".weight"  # M13: two rows of one step; ours is the last


def moved(key):
    """Where we put a row of the Python tool: of three micro steps of its step the third is the optimizer, which belongs to
    the second (M14); a gradient of the second micro batch is no target of its own (M16)."""
    rank, step, (name, stage, micro), metric = key
    return rank, step // 3 * 2 + min(step % 3, 1), (name, stage, 0 if metric == "parameters_grad" else micro), metric


def check_monitor_rows(got, expected):
    ours = {key: value for key, value in got.items() if key[3] not in EXTRA_METRICS}
    harness.check(len(ours) < len(got), "M9 hides nothing")
    harness.check_equal("keys", set(ours), set(expected))
    for key, value in expected.items():
        harness.check_equal(f"M9: {key}", {ours[key].pop(name) for name in EXTRA_STATISTICS}, {None})
        if key[1] == 3 and key[2][0].endswith(REPEATED):
            harness.check((ours[key]["norm"], value["norm"]) == (9.0, 2.5), f"M13: {ours[key]}, {value}")
        else:
            harness.check_equal(str(key), ours[key], value)


def check_dump_rows(got, expected):
    theirs = {moved(key): value for key, value in expected.items()}
    harness.check_equal("rows that become one", len(theirs), len(expected))
    for key, value in theirs.items():
        harness.check_equal(str(key), got.get(key), value)
    # M15: no module encloses it.
    harness.check_equal("rows of ours alone", {key[2][0].rsplit(".", 2)[0] for key in set(got) - set(theirs)}, {"Tensor.sum"})


def check_trend(got, expected, monitor, micro_steps):
    if not monitor and not micro_steps:
        harness.check_equal("data base", got, expected)
        return
    (check_monitor_rows if monitor else check_dump_rows)(got["rows"], expected["rows"])
    for part in ("types", "rank first"):
        harness.check_equal(part, got[part], expected[part])
    for part in ("metrics", "tags"):
        harness.check(expected[part] <= got[part], f"{part}: {expected[part] - got[part]} is missing")
    extremes = {**expected["extremes"]}
    if not monitor:
        extremes["max_step"] = 3
    harness.check_equal("extremes", {key: got["extremes"][key] for key in extremes}, extremes)


def trend_test(msprobe, golden, name, summary, scratch):
    """--python-rules changes nothing; docs/differences/monitor.md has a row for each difference from the Python tool."""
    case = golden / "trend"
    result = harness.run(msprobe, ["data2db", "--db", str(scratch / "db"), *summary["options"], "--python-rules"], case)
    if not summary["files"]:
        harness.check_equal("exit status", result.returncode, 2)
        harness.check(not (scratch / "db").exists(), "files were written")
        return
    harness.check_equal("exit status", result.returncode, 0)
    harness.check("msprobe data2db: --python-rules has no effect" in result.stderr, result.stderr)
    harness.check_equal("files", sorted(os.listdir(scratch / "db")), summary["files"])
    (file,) = summary["files"]
    with sqlite3.connect(scratch / "db" / file) as made:
        got = content(made)
        harness.check_equal("integrity", made.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
    expected = content(load_sql((case / "sql" / f"{name}.{file.split('.')[0]}.sql").read_text(encoding="utf-8")))
    check_trend(got, expected, file.startswith("monitor"), "no_micro" not in name)


def query(path, sql):
    with sqlite3.connect(path) as connection:
        return connection.execute(sql).fetchall()


ROWS = """SELECT step, target_name, micro_step, metric_name, norm FROM trend_data
    JOIN monitoring_targets USING (target_id) JOIN monitoring_metrics USING (metric_id) """


def csv2db_our_rows(msprobe, golden, scratch):
    """Beyond the Python tool: hook files, communication, the last of two rows, and which NULL is a NaN."""
    source = golden / "trend" / "in" / "monitor"
    harness.run(msprobe, ["monitor", "csv2db", "--db", "db", "--data", str(source)], scratch, status=0)
    path = scratch / "db" / "monitor_data.trend.db"
    metrics = {row[0] for row in query(path, "SELECT metric_name FROM monitoring_metrics")}
    harness.check_equal("metrics", metrics, {"actv", "grad_reduced", "other", "comm", "linear_hook"})
    rows = query(path, ROWS + "WHERE rank = 0 AND metric_name = 'grad_reduced' AND step = 3")
    harness.check_equal("the last counts", rows, [(3, "model.layers.0.fc.weight", 0, "grad_reduced", 9.0)])
    rows = query(path, ROWS + "WHERE metric_name = 'comm'")
    harness.check_equal("communication", [(row[1], row[4]) for row in rows], [("all_reduce_0", 1.0), ("all_reduce_1", 3.0)])
    nans = query(path, "SELECT target_name, statistics FROM trend_nan JOIN monitoring_targets USING (target_id)")
    harness.check_equal("NaN", nans, [("model.layers.0.fc.bias", "norm"), ("all_reduce_1", "min")])


def data2db_the_second_layout(msprobe, golden, scratch):
    source = golden / "v2" / "out_all"
    harness.run(msprobe, ["data2db", "--db", "db", "--data", str(source)], scratch, status=0)
    path = scratch / "db" / "monitor_data.trend.db"
    metrics = {row[0] for row in query(path, "SELECT metric_name FROM monitoring_metrics")}
    harness.check({"actv", "actv_grad", "grad_reduced", "exp_avg", "param_updated"} <= metrics, metrics)
    with next((source / "rank_0").glob("module_*.csv")).open(encoding="utf-8", newline="") as file:
        written = [row for row in csv.DictReader(file) if row["scope"] == "forward"]
    (count,) = query(path, ROWS.replace("step, target_name, micro_step, metric_name, norm", "count(*)")
                     + "WHERE metric_name = 'actv'")
    harness.check_equal("rows", count[0], len(written))


def data2db_our_micro_steps(msprobe, golden, scratch):
    """Two micro batches and an optimizer step are two micro steps, and what no module encloses is kept."""
    source = golden / "trend" / "in" / "dump"
    harness.run(msprobe, ["data2db", "--db", "db", "--data", str(source)], scratch, status=0)
    path = scratch / "db" / "dump_data.trend.db"
    harness.check_equal("steps", query(path, "SELECT min_step, max_step FROM global_stats"), [(0, 3)])
    for target, metric in (("Tensor.sum.input.0", "forward"), ("Module.model.layers.0.fc.Linear.weight", "parameters_grad")):
        rows = query(path, ROWS + f"WHERE target_name = '{target}' AND metric_name = '{metric}'")
        harness.check_equal(target, [(row[0], row[2]) for row in rows], [(step, 0) for step in range(4)])
    rows = query(path, ROWS + "WHERE target_name = 'Tensor.add_.output.0' AND metric_name = 'forward'")
    harness.check_equal("optimizer", sorted((row[0], row[2]) for row in rows), [(s, c) for s in (1, 3) for c in range(4)])


def data2db_several_roots(msprobe, scratch):
    """A model of five modules that nothing encloses: two steps are two micro steps, not ten."""
    one = dumps.tensor((1, 0, 0.5, 1), [1])
    data = {f"Module.m{i}.Linear.forward.0": {"input_args": [one], "output": [one]} for i in range(5)}
    for step in range(2):
        dumps.write_rank(scratch / "dump" / f"step{step}" / "rank0", data, construct=dict.fromkeys(data), level="L0")
    harness.check_equal("status", harness.run(msprobe, ["data2db", "--db", "db", "--data", "dump"], scratch).returncode, 0)
    path = scratch / "db" / "dump_data.trend.db"
    harness.check_equal("steps", query(path, "SELECT min_step, max_step FROM global_stats"), [(0, 1)])


def make_tests(msprobe, golden):
    msprobe = str(pathlib.Path(msprobe).resolve())
    golden = harness.data(golden, "monitor") / "monitor"
    tests = []
    analyse = golden / "analyse"
    for name, summary in json.loads((analyse / "summary.json").read_text(encoding="utf-8")).items():
        tests.append((f"analyze: {name}", partial(ranking_test, msprobe, analyse, name, summary)))
    for name in ("turbulence", "nan"):
        tests.append((f"alerts: {name}", partial(replay_test, msprobe, golden, name)))
    window = ["--time_start", "Jan01_00-00-01", "--time_end", "Jan01_00-00-06"]
    tests.append(("csv2tb: repeats", partial(made_events, msprobe, golden, "made", [])))
    tests.append(("csv2tb: times", partial(made_events, msprobe, golden, "made_window", window)))
    tests.append(("csv2tb: types", partial(made_events, msprobe, golden, "made_types", ["--data_type_list", "exp_avg,grad_reduced"])))
    for name, options, words in (
        ("bad_time", ["--time_start", "2024-01-01"], ["2024-01-01", "Jan01_00-00-00"]),
        ("swapped", ["--time_start", "Jan01_00-00-06", "--time_end", "Jan01_00-00-04"], ["after its end"]),
        ("bad_type", ["--data_type_list", "nonsense"], ["nonsense"]),
        ("bad_proc", ["--process_num", "0"], ["--process_num"]),
    ):
        tests.append((f"csv2tb: {name}", partial(refused_events, msprobe, golden, options, words)))
    for name, summary in json.loads((golden / "trend" / "summary.json").read_text(encoding="utf-8")).items():
        tests.append((f"data2db: {name}", partial(trend_test, msprobe, golden, name, summary)))
    return tests + harness.tests_of_script(msprobe=msprobe, golden=golden, case=analyse)


if __name__ == "__main__":
    harness.main(make_tests)
