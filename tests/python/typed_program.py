# SPDX-License-Identifier: Apache-2.0
"""Uses what docs/python.md, docs/collector.md and docs/monitor.md name, as a program that is checked strictly does. Nothing
runs it: scripts/lint has mypy read it, to which a function without types, or with others, is an error."""

import os
from pathlib import Path
from typing import Any, Dict, List, Optional

import torch

import msprobe
from msprobe import mindspore
from msprobe.core import SingleComparator, SingleSave
from msprobe.core.config_check import ConfigChecker
from msprobe.core.grad_probe.grad_compare import GradComparator
from msprobe.core.monitor_v2 import TrainerMonitorV2
from msprobe.integrations import accelerate, lightning, transformers
from msprobe.pytest_plugin import assert_same_run
from msprobe.pytorch import (PrecisionDebugger, TrainerMon, check, compare, compare_distributed, module_dump, module_dump_end,
                             random_save, seed_all)
from msprobe.response_anomaly import analyze_output_anomaly
from msprobe.response_anomaly.detector import ILLDetector


def compares(path: Path) -> Optional[str]:
    try:
        found = msprobe.compare(path, "golden", noise_floor=path, fuzzy_match=True, options=["--merge-ranks"])
    except msprobe.NothingCompared as error:
        return error.output
    except msprobe.ComparisonError as error:
        return str(error)
    except msprobe.MsprobeException:
        return msprobe.__version__
    kinds: List[str] = [one.kind for one in found.findings]
    report: str = found.report(path / "report.html")
    for row in found.rows():
        kinds.append(str(row["Status"]))
    culprit: Optional[msprobe.Finding] = found.culprit
    return None if found or culprit is None else culprit.entry + report + found.text + kinds[0]


def records(model: torch.nn.Module, optimizer: Any, path: Path) -> None:
    with msprobe.record(model, path, step=[0, "5-7"], list=["relu"], optimizer=optimizer, risk_level="ALL") as recording:
        recording.step()
    place: str = os.fspath(recording)

    @msprobe.record(model, place, level="L0")
    def step(number: int) -> int:
        return number

    step(1)
    assert_same_run(path, recording, noise=path)
    with accelerate.record(Any, model, path, task="tensor") as recording:
        recording.close()
    lightning.RecordCallback(path, steps=2)
    transformers.RecordCallback(path, step=[3])
    found = check(lambda: step(1), lambda: step(2), steps=2, output_path=path)
    if found.culprit is not None and not found.is_final:
        print(found.culprit.confidence, found.statistics, found.tensors, found.notes)


def records_as_before(model: torch.nn.Module, tensor: torch.Tensor) -> None:
    seed_all(seed=1, mode=True, rm_dropout=False, is_enhanced=False)
    random_save(output_path="out")
    debugger = PrecisionDebugger(config_path="config.json", task="statistics", dump_path="out", level="mix", step=[0, "2-3"])
    debugger.start(model=model, token_range=[0, 2], rank_id=0, scheduled_tokens={"1": 3})
    debugger.save(tensor, "name", save_backward=False)
    debugger.register_custom_api(torch, "relu", api_prefix="Mine")
    debugger.restore_custom_api(torch, "relu")
    module_dump(model, "name")
    module_dump_end()
    PrecisionDebugger.stop()
    PrecisionDebugger.forward_backward_dump_end()
    PrecisionDebugger.step()
    PrecisionDebugger.set_init_step(3)
    PrecisionDebugger.monitor(model)
    debugger.service.config.dump_path = f"elsewhere{debugger.service.current_iter}{debugger.config.task}"
    debugger.service.reset_status()
    compare({"npu_path": "a", "bench_path": "b"}, "out", stack_mode=True, fuzzy_match=True)
    compare_distributed("a", "b", output_path="out")
    SingleComparator.compare("a", "b", "out", num_processes=2)
    saver = SingleSave("out")
    saver.save({"name": tensor})
    saver.save_ex({"name": tensor}, micro_batch=1)
    saver.save_config({"lr": 1e-3})
    saver.step()
    SingleSave.save({"name": tensor})
    SingleSave.save_ex({"name": tensor})
    SingleSave.save_config({})
    SingleSave.step()
    ConfigChecker.apply_patches("mindspore")
    ConfigChecker(model, ["train.sh"], "pack.zip").remove()
    ConfigChecker.compare("a.zip", "b.zip", "out")
    GradComparator.compare_distributed("a", "b", "out")


def records_mindspore(network: Any, tensor: Any) -> None:
    mindspore.seed_all(seed=1, mode=False, rm_dropout=True)
    debugger = mindspore.PrecisionDebugger(config_path="config.json")
    debugger.start(network)
    debugger.stop()
    debugger.step()
    mindspore.MsprobeStep(debugger)
    mindspore.MsprobeInitStep()
    mindspore.save("out", "name", [tensor])
    mindspore.save_grad("out", "name", tensor)
    mindspore.step()
    mindspore.compare("compare.json", output_path="out")
    mindspore.compare_distributed("a", "b")
    mindspore.TrainerMon("monitor.json").set_monitor(network, None)


def monitors(model: torch.nn.Module, optimizer: Any) -> Dict[str, Dict[str, Any]]:
    monitor = TrainerMon("monitor.json", process_group=None, params_have_main_grad=False)
    monitor.set_alert_callback(lambda alerts: print(len(alerts)))
    monitor.set_wrapped_optimizer(optimizer)
    monitor.set_monitor(model, optimizer, grad_acc_steps=2, start_iteration=5)
    monitor.monitor_gnorm_with_ad([model], optimizer)
    monitor.ops = [*monitor.ops, "norm"]
    monitor.adhoc_check(torch.ones(1), "module", "tensor", [0], ["norm"])
    monitor.reload_xy()
    if monitor.monitoring:
        monitor.stop()
    five = TrainerMonitorV2("monitor.json", fr="pytorch")
    five.start(model=model, optimizer=optimizer, grad_acc_steps=2)
    five.step()
    five.stop()
    return {**monitor.generate_xy_metrics()[0], **monitor.generate_wgrad_metrics()[1]}


def judges() -> bool:
    results: List[List[Any]] = analyze_output_anomaly([[{1: -0.5}]], [[1]], ["model"])
    return bool(results[0][0]) or ILLDetector("config.yaml").detector([{1: -0.5}], [1]).is_ill
