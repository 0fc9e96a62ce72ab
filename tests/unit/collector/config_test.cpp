// SPDX-License-Identifier: Apache-2.0
#include "collector/config.hpp"

#include <doctest/doctest.h>

#include <string>

#include "unit/support/complaint.hpp"

namespace msprobe::collector_config_test {

using namespace msprobe;
using namespace msprobe::collector;

namespace {

Config parsed(const std::string& text, const ConfigOverrides& overrides = {}) {
  return parse_config(text, "c.json", overrides);
}

/// On a machine with the runtime of an NPU.
ConfigOverrides runtime_of(const char* framework) {
  ConfigOverrides overrides;
  overrides.kernels_of = framework;
  return overrides;
}

/// A configuration that is right but for these members.
std::string with(const std::string& members) {
  return R"({"dump_path": "d", )" + members + "}";
}

template <typename E = FormatError>
std::string complaint(const std::string& text, const ConfigOverrides& overrides = {}) {
  return test::message_of<E>([&] { parsed(text, overrides); });
}

using Numbers = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("config: defaults") {
  const Config config = parsed(R"({"dump_path": "./d"})");
  CHECK(config.task == Task::statistics);
  CHECK(config.level == Level::l1);
  CHECK(config.dump_path == "./d");
  CHECK(config.ranks.empty());
  CHECK(config.steps.empty());
  CHECK(config.extra_info);
  CHECK_FALSE(config.async_dump);
  CHECK_FALSE(config.high_precision);
  CHECK(config.risk_level == RiskLevel::focus);
  CHECK_FALSE(config.dump_enable.has_value());
  CHECK(config.custom_op_namespaces == std::vector<std::string>{"_C_ascend"});
  CHECK(config.summary_mode == SummaryMode::statistics);
  CHECK(config.diff_nums == 1);
  CHECK(config.hard_links);
  CHECK(config.write_buffer == 256);
  CHECK(config.data_mode.forward);
  CHECK(config.data_mode.parameter_gradients);
  CHECK(config.warnings.empty());
}

TEST_CASE("config: the program's words come before the file's") {
  const Config config =
      parsed(with(R"("task": "tensor", "level": "L0", "step": [7], "structure": {"list": ["a"]},
                                      "tensor": {"list": ["b"]})"),
             {.task = "structure", .dump_path = "e", .level = "mix", .step = "[0, \"2-4\"]"});
  CHECK(config.task == Task::structure);
  CHECK(config.level == Level::mix);
  CHECK(config.dump_path == "e");
  CHECK(config.steps == Numbers{0, 2, 3, 4});
  CHECK(config.list == std::vector<std::string>{"a"});  // the section of the task that counts
  CHECK(config.setting("task") == "\"structure\"");
  CHECK(config.setting("section.list") == "[\"a\"]");
  CHECK(config.setting("nothing") == "null");
}

TEST_CASE("config: steps and ranks") {
  CHECK(parsed(with(R"("step": [3, "1", "2-3", 3], "rank": ["0-2"])")).steps == Numbers{1, 2, 3});
  CHECK(parsed(with(R"("rank": ["0-2"])")).ranks == Numbers{0, 1, 2});
  CHECK(parsed(with(R"("step": [1000000])")).steps == Numbers{1'000'000});
  CHECK(parsed(with(R"("step": null, "rank": [])")).steps.empty());
  CHECK(complaint(with(R"("step": [1000001])")) == "c.json: step: must be from 0 to 1000000");
  CHECK(complaint(with(R"("step": [-1])")) == "c.json: step: must be from 0 to 1000000");
  CHECK(complaint(with(R"("step": [true])")) == "c.json: step: must be an integer");
  CHECK(complaint(with(R"("step": [1.5])")) == "c.json: step: must be an integer");
  CHECK(complaint(with(R"("rank": 3)")) ==
        "c.json: rank: must be a list of integers and of ranges such as \"2-5\"");
  CHECK(complaint(with(R"("step": ["4-2"])")) == "c.json: step: the range \"4-2\" runs backwards");
  for (const char* wrong : {"", "-", "1-", "-1", "1-2-3", "a", " 1", "99999999999"}) {
    CAPTURE(wrong);
    CHECK(complaint(with(R"("step": [")" + std::string(wrong) + "\"]"))
              .find("must be a number from 0 to 1000000") != std::string::npos);
  }
  CHECK(complaint(with(R"("step": ["0-1000000"])")) == "c.json: step: has too many elements");
}

TEST_CASE("config: unknown words") {
  CHECK(
      complaint(with(R"("task": "stat")")) ==
      "c.json: task: \"stat\" must be one of statistics, tensor, structure, overflow_check, free_benchmark, "
      "grad_probe, acc_check, exception_dump");
  CHECK(complaint(with(R"("level": "l1")")) == "c.json: level: \"l1\" must be one of L0, L1, mix, debug, L2");
  CHECK(complaint(with(R"("level": 1)")) == "c.json: level: must be one of L0, L1, mix, debug, L2");
  CHECK(complaint(with(R"("precision": "mid")")) == "c.json: precision: \"mid\" must be one of low, high");
  CHECK(complaint(with(R"("precision": null)")) == "c.json: precision: must be one of low, high");
  CHECK(complaint(with(R"("risk_level": "LOW")")) ==
        "c.json: risk_level: \"LOW\" must be one of ALL, CORE, FOCUS");
  CHECK(parsed(with(R"("risk_level": null)")).risk_level == RiskLevel::all);
  CHECK(complaint(with(R"("extra_info": 1)")) == "c.json: extra_info: must be true or false");
  CHECK_FALSE(parsed(with(R"("hard_links": false)")).hard_links);
  CHECK(complaint(with(R"("hard_links": "no")")) == "c.json: hard_links: must be true or false");
  CHECK(parsed(with(R"("write_buffer_mb": 0)")).write_buffer == 0);
  CHECK(complaint(with(R"("write_buffer_mb": -1)")) ==
        "c.json: write_buffer_mb: must be a whole number from 0 to 1000000");
  CHECK(complaint(with(R"("write_buffer_mb": 1000001)")) ==
        "c.json: write_buffer_mb: must be a whole number from 0 to 1000000");
  CHECK(complaint(with(R"("write_buffer_mb": "1G")")) ==
        "c.json: write_buffer_mb: must be a whole number from 0 to 1000000");
  CHECK(complaint(with(R"("dump_enable": "yes")")) == "c.json: dump_enable: must be true or false");
  CHECK(complaint(with(R"("statistics": {"summary_mode": "sha"})")) ==
        "c.json: statistics: summary_mode: \"sha\" must be one of statistics, md5, xor");
  CHECK(complaint(with(R"("statistics": null)")) == "c.json: statistics: must be an object");
}

TEST_CASE("config: what needs another runtime says which") {
  for (const char* task : {"exception_dump", "nan_check"}) {
    CAPTURE(task);
    CHECK(complaint(with(R"("task": ")" + std::string(task) + '"')).find(" NPU") != std::string::npos);
  }
  CHECK(complaint(with(R"("level": "L2")")).find("needs an NPU") != std::string::npos);
}

TEST_CASE("config: kernels that the runtime of an NPU dumps") {
  const std::string call =
      R"("level": "L2", "task": "tensor", "tensor": {"list": ["Torch.relu.3.backward"]})";
  const Config of_pytorch = parsed(with(call), runtime_of("pytorch"));
  CHECK(of_pytorch.list == std::vector<std::string>{"Torch.relu.3.forward"});
  CHECK(of_pytorch.setting("section.list") == R"(["Torch.relu.3.backward"])");
  CHECK(of_pytorch.calls_again());
  CHECK(of_pytorch.records_apis());
  CHECK_FALSE(of_pytorch.has_entries());
  CHECK_FALSE(of_pytorch.has_step_folders());
  CHECK(complaint(with(R"("level": "L2", "task": "tensor")"), runtime_of("pytorch"))
            .find("list: must hold one call") != std::string::npos);
  CHECK(complaint(with(R"("task": "exception_dump")"), runtime_of("pytorch")).find("needs MindSpore") !=
        std::string::npos);

  const std::string kernels = with(
      R"x("level": "L2", "statistics": {"list": ["name-regex(Default/.+)"], "summary_mode": ["max"],
          "device": null})x");
  const Config of_mindspore = parsed(kernels, runtime_of("mindspore"));
  CHECK_FALSE(of_mindspore.records());
  CHECK_FALSE(of_mindspore.records_apis());
  CHECK(of_mindspore.warnings.empty());
  CHECK(parsed(with(R"("level": "L2", "task": "exception_dump")"), runtime_of("mindtorch")).by_runtime);
  CHECK(
      complaint(with(R"("level": "L2", "statistics": {"summary_mode": ["median"]})"), runtime_of("mindspore"))
          .find("summary_mode: \"median\" is not one of max, min") != std::string::npos);
}

TEST_CASE("config: calls that are judged while the training runs") {
  const auto of = [](const std::string& section) {
    return with(R"("task": "acc_check", "acc_check": )" + section);
  };
  const Config config = parsed(of(R"({"rank_list": [3, "5-6"], "budget": null, "white_list": ["sin"]})"));
  CHECK(config.level == Level::l1);
  CHECK(config.ranks == std::vector<std::uint32_t>{3, 5, 6});
  CHECK_FALSE(config.extra_info);
  CHECK_FALSE(config.has_entries());
  CHECK(config.setting("section.budget") == "null");
  CHECK(config.setting("section.interval") == "1");
  CHECK(config.setting("section.reference") == "\"cpu\"");
  CHECK(parsed(of("{}")).setting("section.budget") == "0.2");
  CHECK(complaint(of(R"({"budget": 0})")) ==
        "c.json: acc_check: budget: must be a number above 0, the share of time that may be added, or null "
        "for no limit");
  CHECK(complaint(of(R"({"interval": 0})")) ==
        "c.json: acc_check: interval: must be a whole number from 1 to 1000000");
  CHECK(complaint(of(R"({"reference": "gpu"})")) ==
        "c.json: acc_check: reference: \"gpu\" must be one of cpu, device");
  CHECK(complaint(of(R"({"compare": 1})")) == "c.json: acc_check: compare: must be true or false");
  CHECK(complaint(of(R"({"error_data_path": 1})")) == "c.json: acc_check: error_data_path: must be a string");

  const Config old = parsed(of(
      R"({"is_online": false, "is_benchmark_device": true, "nfs_path": "", "host": "h", "port": 1, "tls_path": ""})"));
  CHECK(old.warnings ==
        std::vector<std::string>{
            "c.json: acc_check: \"is_online\" false has no effect: task acc_check judges a running "
            "training",
            "c.json: acc_check: \"is_benchmark_device\" has no effect: references are computed where "
            "`reference` or the server's -d says"});
  CHECK(old.setting("section.host") == "\"h\"");
  CHECK(old.setting("section.port") == "1");
  CHECK(parsed(of(R"({"server": "judge:9000", "tls_path": "t"})")).warnings.empty());
  for (const char* server : {"judge", ":1", "judge:", "judge:0", "judge:65536", "judge:1x"}) {
    CHECK(complaint(of(R"({"server": ")" + std::string(server) + "\"}")) ==
          "c.json: acc_check: server: must be a host and a port, such as \"judge:9000\"");
  }
  CHECK(complaint(of(R"({"server": "a:1", "host": "b", "port": 2})")) ==
        "c.json: acc_check: server: is given besides host: leave out one of them");
  CHECK(complaint(of(R"({"server": "a:1", "nfs_path": "b"})")) ==
        "c.json: acc_check: server: is given besides nfs_path: leave out one of them");
  CHECK(complaint(of(R"({"host": "b"})")) == "c.json: acc_check: port: is missing beside host");
  CHECK(complaint(of(R"({"port": 65536})")) == "c.json: acc_check: port: must be at most 65535");
  CHECK(complaint(of(R"({"port": 9000})")) == "c.json: acc_check: port: needs a host");
  CHECK(complaint(of(R"({"tls_path": "c"})")) == "c.json: acc_check: tls_path: needs a server");
}

TEST_CASE("config: data_mode") {
  const auto mode = [](const std::string& modes) {
    return parsed(with(R"("statistics": {"data_mode": )" + modes + "}")).data_mode;
  };
  const DataMode output = mode(R"(["output"])");
  CHECK((output.forward && output.backward && !output.input && output.output && output.parameter_gradients));
  const DataMode forward = mode(R"(["forward"])");
  CHECK((forward.forward && !forward.backward && forward.input && forward.output));
  CHECK_FALSE(forward.parameter_gradients);
  const DataMode backward_input = mode(R"(["backward", "input"])");
  CHECK(
      (!backward_input.forward && backward_input.backward && backward_input.input && !backward_input.output));
  CHECK(complaint(with(R"("statistics": {"data_mode": ["all", "input"]})")) ==
        "c.json: statistics: data_mode: \"all\" must stand alone");
}

TEST_CASE("config: scope and list") {
  const auto scope = [](const std::string& level, const std::string& names) {
    return complaint<ScopeError>(
        with(R"("level": ")" + level + R"(", "statistics": {"scope": )" + names + "}"));
  };
  const std::string api = R"("Functional.relu.0.forward")";
  const std::string module = R"("Module.a.b.ReLU.backward.12")";
  CHECK(scope("L1", "[" + api + "," + api + "]") == "accepted");
  CHECK(scope("L0", "[" + module + "," + module + "]") == "accepted");
  CHECK(scope("mix", "[" + api + "," + module + "]") == "accepted");
  CHECK(
      scope("L1", "[" + api + "," + module + "]") ==
      "c.json: statistics: scope: \"Module.a.b.ReLU.backward.12\" is not a full name of level L1: an API's, "
      "\"Functional.linear.0.forward\"");
  CHECK(scope("L0", "[" + api + "," + module + "]").find("is not a full name of level L0") !=
        std::string::npos);
  CHECK(scope("L1", "[" + api + "]").find("exactly two names") != std::string::npos);
  CHECK(scope("L1", "[1, 2]") == "c.json: statistics: scope: must be a list of strings");
  for (const char* wrong : {"Functional", "Functional.relu", "relu.0.forward", ".0.forward", "a.b.c.forward",
                            "Functional.relu.0.forwards", "Functional.relu.0.forward.0", ""}) {
    CAPTURE(wrong);
    CHECK(scope("mix", "[" + api + ", \"" + wrong + "\"]").find("is not a full name") != std::string::npos);
  }
}

TEST_CASE("config: slices") {
  const Config config =
      parsed(with(R"("statistics": {"slice": [{"dim": 1, "size": 8, "begin": -3, "end": -1}, {}]})"));
  REQUIRE(config.slice.size() == 2);
  CHECK(config.slice[0].dim == 1);
  CHECK(config.slice[0].size == 8);
  CHECK(config.slice[0].begin == -3);
  CHECK(config.slice[0].end == -1);
  CHECK_FALSE(config.slice[1].end.has_value());
  CHECK(complaint(with(R"("statistics": {"slice": [{"dim": -1}]})")).find("dim: must not be negative") !=
        std::string::npos);
  CHECK(complaint(with(R"("statistics": {"slice": [{"dims": 1}]})")).find("is not one of dim") !=
        std::string::npos);
  const Config elsewhere =
      parsed(with(R"("task": "structure", "level": "L0", "structure": {"slice": [{}]})"));
  CHECK(elsewhere.slice.empty());
  CHECK(elsewhere.warnings.size() == 1);
}

TEST_CASE("config: keys that exclude each other") {
  CHECK(complaint(with(R"("async_dump": true, "task": "tensor")")).find("needs a `list`") !=
        std::string::npos);
  CHECK(complaint(with(R"("async_dump": true, "task": "tensor", "tensor": {"list": ["a"]})")) == "accepted");
  CHECK(complaint(with(R"("async_dump": true, "statistics": {"summary_mode": "md5"})")) ==
        "c.json: async_dump: cannot be combined with summary_mode md5: set summary_mode to statistics, or "
        "async_dump to "
        "false");
  CHECK(complaint(with(R"("task": "tensor", "tensor": {"bench_path": "b"})")) ==
        "c.json: bench_path: needs summary_mode md5");
  CHECK(complaint(with(R"("task": "tensor", "tensor": {"bench_path": "/nowhere", "summary_mode": "md5"})")) ==
        "c.json: bench_path: /nowhere is not a folder");
  const Config structure = parsed(with(R"("task": "structure")"));
  CHECK(structure.level == Level::mix);
  CHECK(structure.warnings.size() == 1);
}

TEST_CASE("config: warnings name keys without effect, and the nearest key that has one") {
  using Lines = std::vector<std::string>;
  const auto told = [](const std::string& members) { return parsed(with(members)).warnings; };
  CHECK(
      told(
          R"("rank": [], "statistics": {"list": [], "scope": []}, "tensor": {"file_format": "bin"}, "_note": 1)") ==
      Lines{});
  CHECK(told(R"("levl": "L0")") ==
        Lines{"c.json: \"levl\" is not a key and has no effect: did you mean \"level\"?"});
  CHECK(told(R"("statistic": {})") ==
        Lines{"c.json: \"statistic\" is not a key and has no effect: did you mean \"statistics\"?"});
  CHECK(told(R"("statistics": {"sumary_mode": "md5", "zzzz": 0})") ==
        Lines{"c.json: statistics: \"sumary_mode\" is not a key and has no effect: did you mean "
              "\"summary_mode\"?",
              "c.json: statistics: \"zzzz\" is not a key and has no effect"});
  CHECK(told(R"("statistics": {"device": "host", "level": "L0", "overflow_nums": 3})") ==
        Lines{"c.json: statistics: \"device\" has no effect: it is for level L2 of MindSpore; statistics "
              "are computed on the device of the tensor",
              "c.json: statistics: \"level\" has no effect here: it belongs beside the section, not in it",
              "c.json: statistics: \"overflow_nums\" has no effect: it is for task overflow_check"});
  CHECK(told(R"("task": "tensor", "scope": [], "tensor": {"file_format": "npy", "diff_nums": 2})") ==
        Lines{"c.json: \"scope\" has no effect here: it belongs in the section \"tensor\"",
              "c.json: tensor: \"file_format\" has no effect: it is for level L2 of MindSpore; tensors "
              "are saved as .pt by PyTorch's front "
              "end and as "
              ".npy by MindSpore's",
              "c.json: tensor: \"diff_nums\" has no effect: it is for task tensor with bench_path"});
  for (const char* members : {R"("risk_level": "CORE", "level": "L0")",
                              R"("risk_level": "CORE", "statistics": {"list": ["relu"]})"})
    CHECK(told(members) ==
          Lines{"risk_level has no effect: it is for PyTorch at level L1 or mix, without scope and list"});
  CHECK(told(R"("risk_level": "CORE")") == Lines{});
  CHECK(told(R"("risk_level": "ALL", "level": "L0")") == Lines{});
  CHECK(told(R"("seed\u0007": 1)").at(0).find('\a') == std::string::npos);
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "\"key" + std::to_string(i) + "\": 0, ";
  CHECK(told(many + R"("level": "L1")").size() == 20);
  CHECK(parsed(with(R"("levl": 1)")).setting("warnings").starts_with(R"(["c.json: \"levl\" is not a key)"));
}

TEST_CASE("config: hostile files") {
  CHECK(complaint("").starts_with("c.json: not valid JSON: line 1, column 1: "));
  CHECK(complaint("[]") == "c.json: must hold an object");
  CHECK(complaint("{}") == "c.json: dump_path: is missing: it names the folder of the dump");
  CHECK(complaint(R"({"dump_path": 3})") == "c.json: dump_path: must be a string");
  CHECK(complaint(with(R"("x": )" + std::string(100'000, '[') + std::string(100'000, ']'))) ==
        "c.json: nested too deeply");
  CHECK(complaint(with(R"("step": [18446744073709551615])")) == "c.json: step: is too large");
  CHECK_THROWS_WITH_AS(read_config("config.yaml", {}),
                       "config.yaml: the configuration's name must end in .json", IoError);
  CHECK_THROWS_AS(read_config("/nowhere/config.json", {}), IoError);
}

TEST_CASE("config: task free_benchmark") {
  const auto section = [](const std::string& members) {
    return with(R"("task": "free_benchmark", "free_benchmark": {)" + members + "}");
  };
  const Config plain = parsed(section(""));
  CHECK(plain.task == Task::free_benchmark);
  CHECK_FALSE(plain.extra_info);
  CHECK_FALSE(plain.has_entries());
  CHECK(plain.warnings.empty());
  const Config full = parsed(section(
      R"("scope": [], "list": ["relu"], "fuzz_device": "cpu", "pert_mode": "to_cpu", "handler_type": "fix",
         "fuzz_level": "L1", "fuzz_stage": "forward", "if_preheat": false, "preheat_step": 15, "max_sample": 20)"));
  CHECK(full.warnings.empty());
  CHECK(full.list == std::vector<std::string>{"relu"});
  CHECK(full.setting("section.pert_mode") == "\"to_cpu\"");
  const Config odd =
      parsed(with(R"("task": "free_benchmark", "level": "mix", "free_benchmark": {"pert_mod": 1})"));
  CHECK(odd.level == Level::l1);
  REQUIRE(odd.warnings.size() == 2);
  CHECK(odd.warnings[0] ==
        "c.json: free_benchmark: \"pert_mod\" is not a key and has no effect: did you mean \"pert_mode\"?");
  CHECK(odd.warnings[1] == "task free_benchmark calls operations again: level L1 is used instead of mix");

  const auto wrong = [&](const std::string& members) { return complaint(section(members)); };
  CHECK(
      wrong(R"("pert_mode": "bogus")") ==
      "c.json: free_benchmark: pert_mode: \"bogus\" must be one of improve_precision, add_noise, bit_noise, "
      "change_value, no_change, to_cpu");
  CHECK(wrong(R"("pert_mode": 3)").find("pert_mode: must be one of improve_precision, add_noise") !=
        std::string::npos);
  CHECK(wrong(R"("pert_mode": "to_cpu")").find("fuzz_device: must be \"cpu\"") != std::string::npos);
  CHECK(wrong(R"("fuzz_device": "cpu")").find("fuzz_device: \"cpu\" is for") != std::string::npos);
  CHECK(wrong(R"("fuzz_level": "L2")").find("fuzz_level") != std::string::npos);
  CHECK(wrong(R"("fuzz_stage": "both")").ends_with("\"both\" must be one of forward, backward"));
  CHECK(wrong(R"("if_preheat": 1)").ends_with("if_preheat: must be true or false"));
  for (const char* value : {"0", "-1", "1.5", "true", "\"3\"", "1000001", "18446744073709551615"})
    CHECK(wrong("\"preheat_step\": " + std::string(value)).ends_with("from 1 to 1000000"));
  CHECK(wrong(R"("pert_mode": "add_noise", "handler_type": "fix")").find("handler_type") !=
        std::string::npos);
  CHECK(wrong(R"("handler_type": "fix", "fuzz_stage": "backward")").find("\"forward\"") != std::string::npos);
  CHECK(wrong(R"("handler_type": "fix", "if_preheat": true)").find("if_preheat") != std::string::npos);
  CHECK(wrong(R"("pert_mode": "to_cpu", "fuzz_device": "cpu", "if_preheat": true)").find("if_preheat") !=
        std::string::npos);
}

}  // namespace msprobe::collector_config_test
