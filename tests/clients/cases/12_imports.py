# SPDX-License-Identifier: Apache-2.0
"""Names that clients and the Python tool's own manual import."""
import importlib, sys
CASES = [
 ("msprobe.pytorch", "PrecisionDebugger seed_all TrainerMon module_dump module_dump_end random_save acl_save AclGraphDumper set_fx_dump_config set_ge_dump_config", "all"),
 ("msprobe.pytorch", "compare compare_distributed", "MindSpeed-RL docs (8.x)"),
 ("msprobe.core", "SingleSave SingleComparator", "MindSpeed-RL, MindSpeed-LLM rlhf_gpt.py"),
 ("msprobe.core.monitor_v2.trainer", "TrainerMonitorV2", "manual, torchtitan harness"),
 ("msprobe.core.monitor_v2", "TrainerMonitorV2", ""),
 ("msprobe.core.config_check", "ConfigChecker", "manual, torchtitan harness"),
 ("msprobe.pytorch.config_checking.config_checker", "ConfigChecker", "8.1 manual, agent skills"),
 ("msprobe.pytorch.config_checking.checkers.random_checker", "apply_patches", "8.1 manual, agent skills"),
 ("msprobe.pytorch.compile_accuracy_checker.precision_checker", "PrecisionChecker", "manual, torchtitan harness, torch_npu benchmarks"),
 ("msprobe.pytorch.common.utils", "seed_all", "verl-omni skill"),
 ("msprobe.pytorch.common", "seed_all", "8.x scripts"),
 ("msprobe.pytorch.debugger.precision_debugger", "PrecisionDebugger", "verl-omni skill (8.x path)"),
 ("msprobe.pytorch.dump.debugger.precision_debugger", "PrecisionDebugger", "26.x path"),
 ("msprobe.pytorch.monitor.module_hook", "TrainerMon", "older monitor scripts"),
 ("msprobe.pytorch.monitor.csv2tb", "csv2tensorboard_by_step", "manual"),
 ("msprobe.response_anomaly", "analyze_output_anomaly", "AISBench, manual"),
 ("msprobe.response_anomaly.detector", "ILLDetector", "MindIE-Motor, AISBench"),
 ("msprobe.core.common.megatron_utils", "ParallelConfig plot_model_parallelism", "manual"),
 ("msprobe.core.common.const", "CompareConst Const", "torch_npu inductor"),
 ("msprobe.pytorch.api_accuracy_checker.compare.compare_utils", "BENCHMARK_COMPARE_SUPPORT_LIST", "torch_npu inductor"),
 ("msprobe.pytorch.api_accuracy_checker.triton_adapter.get_compare_result", "get_compare_result", "torch_npu inductor"),
 ("msprobe.pytorch.hook_module.api_register", "get_api_register", "8.x tests"),
]
for module, names, who in CASES:
    try:
        m = importlib.import_module(module)
        lack = [n for n in names.split() if not hasattr(m, n)]
        print("%-5s %s %s  [%s]" % ("OK" if not lack else "LACK", module, " ".join(lack) if lack else "", who))
    except BaseException as e:
        print("FAIL  %s: %s: %s  [%s]" % (module, type(e).__name__, str(e)[:90], who))
