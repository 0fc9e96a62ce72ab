// SPDX-License-Identifier: Apache-2.0
// The training monitor through its C interface: what a training hands over, and the files that come out.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "msprobe/monitor.h"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::monitor_engine_test {

using namespace msprobe;
using Json = nlohmann::ordered_json;

namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Monitor {
  explicit Monitor(const Json& configuration, msprobe_monitor_options given = {}) {
    open(configuration.dump(), nullptr, given);
  }
  Monitor(const std::string& path, bool dynamic) {
    msprobe_monitor_options given{};
    given.dynamic = dynamic ? 1 : 0;
    open("", path.c_str(), given);
  }
  ~Monitor() { CHECK(msprobe_monitor_close(engine) == MSPROBE_OK); }
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  void open(const std::string& text, const char* path, msprobe_monitor_options given) {
    given.struct_size = sizeof given;
    given.output_dir = folder.path().c_str();
    const msprobe_status status =
        msprobe_monitor_open(path, path == nullptr ? text.c_str() : nullptr, &given, &engine);
    REQUIRE_MESSAGE(status == MSPROBE_OK, msprobe_last_error());
  }

  std::uint32_t series(const char* quantity, const char* name, int micro_step = -1,
                       const char* scope = nullptr, int stage = 0) {
    msprobe_series one{sizeof(msprobe_series), quantity, stage, micro_step, name, scope};
    std::uint32_t id = 0;
    const msprobe_status status = msprobe_monitor_series(engine, &one, &id);
    REQUIRE_MESSAGE(status == MSPROBE_OK, msprobe_last_error());
    return id;
  }

  msprobe_status observe(std::uint32_t id, const std::vector<float>& values) {
    const auto length = static_cast<std::int64_t>(values.size());
    msprobe_tensor tensor{};
    tensor.struct_size = sizeof tensor;
    tensor.data = values.data();
    tensor.shape = &length;
    tensor.ndim = 1;
    tensor.dtype = MSPROBE_FLOAT32;
    return msprobe_monitor_observe(engine, id, &tensor);
  }

  msprobe_step_result step(msprobe_status expected = MSPROBE_OK) {
    msprobe_step_result result{};
    result.struct_size = sizeof result;
    CHECK(msprobe_monitor_step_end(engine, &result) == expected);
    return result;
  }

  bool collecting() const { return *msprobe_monitor_collecting(engine) != 0; }
  Json setting(const char* key) {
    const char* json = nullptr;
    REQUIRE(msprobe_monitor_setting(engine, key, &json) == MSPROBE_OK);
    return Json::parse(json);
  }
  std::string rank_folder() { return setting("folder"); }
  std::string file(const std::string& name) { return read_text(rank_folder() + "/" + name); }
  Json anomalies() { return Json::parse(read_text(folder.path() + "/anomaly_detected/rank0/anomaly.json")); }

  test::ScratchDirectory folder;
  msprobe_monitor* engine = nullptr;
};

const float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("A step's values become rows; what did not come in a step has none") {
  Monitor monitor({{"ops", {"norm", "min", "nans"}}, {"step_count_per_record", 10}});
  const auto weight = monitor.series("grad_reduced", "a.weight");
  const auto bias = monitor.series("grad_reduced", "a.bias");
  CHECK(monitor.series("grad_reduced", "a.weight") == weight);
  CHECK(monitor.observe(weight, {3, -4}) == MSPROBE_OK);
  CHECK(monitor.observe(bias, {1}) == MSPROBE_OK);
  CHECK(monitor.observe(weight, {6, 8}) == MSPROBE_OK);  // the last one counts
  CHECK(monitor.step().written == 1);
  CHECK(monitor.observe(bias, {kNan, 2}) == MSPROBE_OK);
  monitor.step();
  CHECK(monitor.step().written == 0);
  CHECK(msprobe_monitor_absent(monitor.engine, weight) == MSPROBE_OK);
  monitor.step();
  CHECK(monitor.file("grad_reduced_0-9.csv") ==
        "vpp_stage,name,step,norm,min,nans,shape,dtype\n"
        "0,a.weight,0,10.0,6.0,0,[2],torch.float32\n"
        "0,a.bias,0,1.0,1.0,0,[1],torch.float32\n"
        "0,a.bias,1,nan,nan,1,[2],torch.float32\n"
        "0,a.weight,3,nan,nan,nan,nan,nan\n");
}

TEST_CASE("Rows of a module stand together, gradients as they came") {
  Monitor monitor(Json{{"xy_distribution", true}});
  const char* names[] = {"a.input", "b.input", "a.output", ".input"};
  for (const char* quantity : {"actv", "actv_grad"}) {
    for (int micro_step = 0; micro_step < 2; ++micro_step) {
      for (const char* name : names) monitor.observe(monitor.series(quantity, name, micro_step), {1});
    }
  }
  monitor.step();
  const std::string rest = "1.0,[1],torch.float32\n";
  const std::string header = "vpp_stage,name,step,micro_step,norm,shape,dtype\n";
  CHECK(monitor.file("actv_0-0.csv") == header + "0,a.input,0,0," + rest + "0,a.output,0,0," + rest +
                                            "0,a.input,0,1," + rest + "0,a.output,0,1," + rest +
                                            "0,b.input,0,0," + rest + "0,b.input,0,1," + rest +
                                            "0,.input,0,0," + rest + "0,.input,0,1," + rest);
  CHECK(monitor.file("actv_grad_0-0.csv").find("0,.input,0,0," + rest + "0,a.input,0,1,") !=
        std::string::npos);
}

TEST_CASE("Nothing is taken outside of the window, whose end is reported once") {
  Monitor monitor({{"start_step", 2}, {"step_interval", 3}, {"collect_times", 2}});
  const auto id = monitor.series("grad_reduced", "a");
  std::vector<int> collected;
  std::vector<int> finished;
  for (int step = 0; step < 12; ++step) {
    const bool collecting = monitor.collecting();
    CHECK(monitor.observe(id, {1}) == (collecting ? MSPROBE_OK : MSPROBE_SKIP));
    if (collecting) collected.push_back(step);
    if (monitor.step().finished != 0) finished.push_back(step);
  }
  CHECK(collected == std::vector<int>{2, 5});
  CHECK(finished == std::vector<int>{5});
  CHECK(monitor.setting("collected") == 2);
}

TEST_CASE("The counter starts where it is set, and other ranks record nothing") {
  Monitor monitor({{"module_ranks", {1}}, {"step_count_per_record", 4}});
  CHECK_FALSE(monitor.collecting());
  CHECK(msprobe_monitor_set_rank(monitor.engine, 1) == MSPROBE_OK);
  CHECK(msprobe_monitor_set_step(monitor.engine, 6) == MSPROBE_OK);
  CHECK(monitor.collecting());
  monitor.observe(monitor.series("param_origin", "w"), {2});
  monitor.step();
  CHECK(monitor.rank_folder().find("-rank1-") != std::string::npos);
  CHECK(monitor.file("param_origin_4-7.csv").find("0,w,6,2.0,[1],torch.float32") != std::string::npos);
}

TEST_CASE("A spike and a NaN are alerts with separate keys, micro steps and calls") {
  Monitor monitor({{"ops", {"norm", "mean", "max"}},
                   {"alert",
                    {{"rules",
                      {{{"rule_name", "AnomalyTurbulence"}, {"args", {{"threshold", 0.5}}}},
                       {{"rule_name", "AnomalyNan"}}}},
                     {"dump", true}}}});
  const auto quiet = monitor.series("actv", "a.input", 1);
  const auto loud = monitor.series("actv", "a.output", 1);
  const auto missing = monitor.series("actv_grad", "a.input", 1);
  const auto call = monitor.series("comm", "all_reduce", -1, "post_0");
  for (int step = 0; step < 8; ++step) {
    const float size = step == 5 ? 100 : 1;
    monitor.observe(quiet, {1, 1});
    monitor.observe(loud, {step == 6 ? kNan : size, 1});
    msprobe_monitor_absent(monitor.engine, missing);
    monitor.observe(call, {step == 5 ? kNan : 1});
    const msprobe_step_result result = monitor.step();
    CHECK(result.alerts == (step == 5 ? 5 : (step == 6 ? 3 : 0)));
    const char* hits = nullptr;
    REQUIRE(msprobe_monitor_alerts(monitor.engine, &hits) == MSPROBE_OK);
    CHECK(Json::parse(hits).size() == result.alerts);
    if (step == 0) CHECK(monitor.anomalies() == Json::object());
  }
  const Json anomalies = monitor.anomalies();
  CHECK(anomalies.size() == 8);
  const Json& spike = anomalies["0:a.output:1/rank0/actv_step_5_call_1"];
  CHECK(spike["micro_step"] == 1);
  CHECK(spike["call_id"] == 1);
  CHECK(spike["vpp_stage"] == 0);
  CHECK(spike["group_mates"] == Json::array({0}));
  CHECK(spike["tag_name"] == "0:a.output:1/rank0/actv");
  const std::string message = spike["message"];
  CHECK(message.starts_with(
      "Rule AnomalyTurbulence reports anomaly signal in ('0:a.output:1/rank0/actv', 'norm') at step 5, "
      "current value 100.004999875"));
  CHECK(anomalies.contains("0:a.output:1/rank0/actv_step_5_call_1_mean"));
  CHECK(anomalies.contains("0:a.output:1/rank0/actv_step_6_call_1_max"));
  CHECK(anomalies["all_reduce/rank0/post_0_step_5_call_-1"]["call_id"] == -1);
}

TEST_CASE("Calls of one operation and step are one row without a stage") {
  Monitor monitor(Json{{"ops", {"norm", "min", "max", "mean"}}});
  const auto id = monitor.series("comm", "all_reduce", -1, "pre_0");
  monitor.observe(id, {3, 4});
  monitor.observe(id, {6, -8});
  monitor.step();
  CHECK(monitor.file("comm_0-0.csv") ==
        "vpp_stage,name,step,norm,min,max,mean,shape,dtype\n"
        ",all_reduce/rank0/pre_0,0,15.0,-8.0,6.0,1.25,nan,nan\n");
}

TEST_CASE("Columns of the features' files, single numbers, and figures of a device") {
  Monitor monitor(Json{{"ops", {"norm", "max", "zeros", "id"}}});
  const double features[] = {0.25, 1.0 / 3};
  CHECK(msprobe_monitor_observe_values(monitor.engine, monitor.series("linear_hook", "a.linear"), features,
                                       2) == MSPROBE_OK);
  CHECK(msprobe_monitor_observe_values(monitor.engine, monitor.series("linear_hook", "b.linear"), features,
                                       1) == MSPROBE_INVALID);
  CHECK(msprobe_monitor_observe_values(monitor.engine, monitor.series("mg_direction", "w"), features, 1) ==
        MSPROBE_OK);
  msprobe_statistics figures{};
  figures.struct_size = sizeof figures;
  figures.norm = 2.5;
  figures.max = 7;
  figures.integer_max = 7;
  figures.count = 4;
  const std::int64_t shape[] = {2, 2};
  CHECK(msprobe_monitor_observe_statistics(monitor.engine, monitor.series("update", "n"), &figures, 1, shape,
                                           2, MSPROBE_INT64) == MSPROBE_OK);
  CHECK(msprobe_monitor_observe_statistics(monitor.engine, monitor.series("ratio", "n"), &figures, UINT64_MAX,
                                           shape, 2, MSPROBE_BFLOAT16) == MSPROBE_OK);
  monitor.step();
  CHECK(monitor.file("linear_hook_0-0.csv") ==
        "vpp_stage,name,step,sr,kernel_norm\n0,a.linear,0,0.25,0.333333\n");
  CHECK(monitor.file("other_0-0.csv").find("0,w,0,0.25,0.25,0.0,0.25,[],torch.float32\n") !=
        std::string::npos);
  CHECK(monitor.file("update_0-0.csv").find("0,n,0,2.5,7,0.25,nan,\"[2, 2]\",torch.int64\n") !=
        std::string::npos);
  CHECK(monitor.file("ratio_0-0.csv").find("0,n,0,2.5,7.0,nan,nan,\"[2, 2]\",torch.bfloat16\n") !=
        std::string::npos);
}

TEST_CASE("A series gives its values until the step ends, and columns can change while training") {
  Monitor monitor(Json{{"ops", {"norm", "min"}}, {"step_count_per_record", 5}});
  const auto id = monitor.series("grad_reduced", "a");
  const char* json = nullptr;
  CHECK(msprobe_monitor_value(monitor.engine, id, &json) == MSPROBE_SKIP);
  monitor.observe(id, {3, 4});
  REQUIRE(msprobe_monitor_value(monitor.engine, id, &json) == MSPROBE_OK);
  CHECK(std::string(json) == R"({"norm": 5.0, "min": 3.0, "shape": "[2]", "dtype": "torch.float32"})");
  monitor.step();
  CHECK(msprobe_monitor_value(monitor.engine, id, &json) == MSPROBE_SKIP);
  CHECK(msprobe_monitor_set(monitor.engine, "ops", R"(["max"])") == MSPROBE_OK);
  CHECK(msprobe_monitor_set(monitor.engine, "ops", R"("max")") == MSPROBE_INVALID);
  CHECK(std::string(msprobe_last_error()) == "TypeError: ops should be a list");
  monitor.observe(id, {3, 4});
  monitor.step();
  CHECK(monitor.file("grad_reduced_0-4.csv").find(",1,") == std::string::npos);
  CHECK(monitor.file("grad_reduced_1-4.csv") ==
        "vpp_stage,name,step,max,shape,dtype\n0,a,1,4.0,[2],torch.float32\n");
}

TEST_CASE("Layout 2 writes a row for every call, doubles in full") {
  const test::ScratchDirectory folder;
  msprobe_monitor_options options{};
  options.layout = 2;
  options.rank = 3;
  Monitor monitor({{"output_dir", folder.path() + "/new"},
                   {"start_step", 1},
                   {"step_count_per_record", 2},
                   {"monitors",
                    {{"module", {{"ops", {"norm", "nans"}}}},
                     {"Weight_Grad", {{"enabled", true}, {"ops", "max"}}},
                     {"cc", {{"enabled", true}, {"ops", "norm"}}}}}},
                  options);
  const auto input = monitor.series("module", "fc.input.0", -1, "forward", -1);
  const auto weight = monitor.series("Weight_Grad", "fc,weight", 2, "reduced", -1);
  const auto call = monitor.series("cc", "all_reduce/rank3/pre_0", -1, "comm");
  for (int step = 0; step < 4; ++step) {
    monitor.observe(input, {0.1F});
    monitor.observe(input, {kNan});
    monitor.observe(weight, {2});
    monitor.observe(call, {1});
    monitor.observe(call, {1});
    monitor.step();
  }
  CHECK(monitor.rank_folder() == folder.path() + "/new/rank_3");
  CHECK(monitor.file("module_step1-2.csv") ==
        "vpp_stage,step,module_name,scope,norm,nans\r\n"
        "-1,1,fc.input.0,forward,0.10000000149011612,0.0\r\n"
        "-1,1,fc.input.0,forward,nan,1.0\r\n"
        "-1,2,fc.input.0,forward,0.10000000149011612,0.0\r\n"
        "-1,2,fc.input.0,forward,nan,1.0\r\n");
  CHECK(monitor.file("Weight_Grad_step3-4.csv") ==
        "vpp_stage,step,module_name,scope,micro_step,max\r\n-1,3,\"fc,weight\",reduced,2,2.0\r\n");
  CHECK(monitor.file("cc_step3-4.csv") ==
        "vpp_stage,step,module_name,scope,norm\r\n,3,all_reduce/rank3/pre_0,comm,2.0\r\n");
}

TEST_CASE("TensorBoard's files take the numbers of a step") {
  Monitor monitor(Json{{"format", "tensorboard"}, {"ops", {"norm", "nans"}}});
  monitor.observe(monitor.series("actv", "a.input", 0), {3, 4});
  monitor.step();
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(monitor.rank_folder()))
    names.push_back(entry.path().filename());
  REQUIRE(names.size() == 1);
  CHECK(names.front().starts_with("events.out.tfevents."));
  const std::string events = monitor.file(names.front());
  CHECK(events.find("brain.Event:2") != std::string::npos);
  CHECK(events.find(std::string("0:a.input:0/rank0/actv_norm\x15\x00\x00\xa0\x40", 32)) != std::string::npos);
  CHECK(events.find("0:a.input:0/rank0/actv_nans") != std::string::npos);
  CHECK(events.find("_shape") == std::string::npos);
}

TEST_CASE("Dynamic mode: on, off by hand, on again, broken, done") {
  const test::ScratchDirectory folder;
  const std::string path = folder / "live.json";
  std::int64_t time = 1'000'000;
  const auto edit = [&](const std::string& text) {
    std::ofstream(path) << text;
    const timespec stamps[2] = {{++time, 0}, {time, 0}};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), stamps, 0) == 0);
  };
  edit(R"({"dynamic_on": false})");
  Monitor monitor(path, true);
  const auto id = monitor.series("grad_reduced", "a");
  const auto step = [&] {
    monitor.observe(id, {1});
    const msprobe_step_result result = monitor.step();
    int changed = -1;
    const msprobe_status status = msprobe_monitor_reload(monitor.engine, &changed);
    return std::tuple(status, changed, result.finished, monitor.collecting());
  };
  CHECK(step() == std::tuple(MSPROBE_OK, 0, 0, false));
  edit(R"({"dynamic_on": true, "collect_times": 2, "start_step": 50, "ops": ["max"]})");
  CHECK(step() == std::tuple(MSPROBE_OK, 1, 0, true));
  CHECK(step() == std::tuple(MSPROBE_OK, 0, 0, true));
  CHECK(step() == std::tuple(MSPROBE_OK, 0, 1, false));
  CHECK(read_text(path) ==
        "{\n  \"dynamic_on\": false,\n  \"collect_times\": 2,\n  \"start_step\": 50,\n  \"ops\": [\n    "
        "\"max\"\n  ]\n}");
  CHECK(step() == std::tuple(MSPROBE_OK, 0, 0, false));
  edit(R"({"dynamic_on": true})");
  CHECK(step() == std::tuple(MSPROBE_OK, 1, 0, true));
  edit(R"({"dynamic_on": true, "eps": 1})");
  CHECK(step() == std::tuple(MSPROBE_INVALID, 0, 0, true));
  CHECK(std::string(msprobe_last_error()).find("eps should be a float") != std::string::npos);
  CHECK(step() == std::tuple(MSPROBE_OK, 0, 0, true));  // told once
  edit("{");
  CHECK(step() == std::tuple(MSPROBE_INVALID, 0, 0, true));
  edit(R"({"dynamic_on": false})");
  CHECK(step() == std::tuple(MSPROBE_OK, 2, 0, false));
  edit(R"({"dynamic_on": true, "collect_times": 0})");
  CHECK(step() == std::tuple(MSPROBE_OK, 1, 0, false));
  CHECK(step() == std::tuple(MSPROBE_OK, 0, 1, false));
  CHECK(monitor.file("grad_reduced_2-2.csv") ==
        "vpp_stage,name,step,max,shape,dtype\n0,a,2,1.0,[1],torch.float32\n");
  CHECK_FALSE(std::filesystem::exists(monitor.rank_folder() + "/grad_reduced_4-4.csv"));
}

TEST_CASE("append_output goes on in the folder of the rank") {
  const test::ScratchDirectory folder;
  for (const char* name : {"Jan05_00-00-00-rank0-aaaaaaaa", "Jan07_00-00-00-rank0-bbbbbbbb",
                           "Jan07_00-00-00-rank1-cccccccc", "Mar01_00-00-00-rank0-dddddddd", "notes"}) {
    std::filesystem::create_directory(folder / name);
  }
  msprobe_monitor_options options{};
  options.struct_size = sizeof options;
  options.distributed = 1;
  options.output_dir = folder.path().c_str();
  const auto folder_of = [&](const char* text) -> std::optional<std::string> {
    msprobe_monitor* monitor = nullptr;
    if (msprobe_monitor_open(nullptr, text, &options, &monitor) != MSPROBE_OK) return std::nullopt;
    const char* json = nullptr;
    CHECK(msprobe_monitor_setting(monitor, "folder", &json) == MSPROBE_OK);
    std::string found = Json::parse(json);
    msprobe_monitor_close(monitor);
    return found;
  };
  CHECK(folder_of(R"({"append_output": ["Jan01_00-00-00", "Jan31_00-00-00"]})") ==
        folder / "Jan07_00-00-00-rank0-bbbbbbbb");
  const auto none = folder_of(R"({"append_output": ["Feb01_00-00-00", "Feb02_00-00-00"]})");
  REQUIRE(none);
  CHECK(none->find("-rank0-") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(*none));
  CHECK_FALSE(folder_of(R"({"append_output": ["yesterday", "today"]})"));
  CHECK(std::string(msprobe_last_error()).find("'yesterday'") != std::string::npos);
}

TEST_CASE("A place that cannot be written to fails once, and the training goes on") {
  Monitor monitor(Json{{"step_count_per_record", 100}});
  const auto id = monitor.series("grad_reduced", "a");
  const std::string folder = monitor.rank_folder();
  std::ofstream(folder) << "in the way";
  int failures = 0;
  for (int step = 0; step < 4; ++step) {
    monitor.observe(id, {1});
    msprobe_step_result result{};
    result.struct_size = sizeof result;
    if (msprobe_monitor_step_end(monitor.engine, &result) == MSPROBE_FAILED) ++failures;
  }
  CHECK(failures == 1);
  std::filesystem::remove(folder);
  monitor.observe(id, {1});
  monitor.step();
  CHECK(monitor.file("grad_reduced_0-99.csv").find("0,a,4,1.0") != std::string::npos);
}

TEST_CASE("Threads of a backward pass observe beside each other") {
  Monitor monitor(Json{{"ops", {"norm"}}});
  constexpr int kThreads = 4;
  constexpr int kEach = 50;
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < kThreads * kEach; ++i)
    ids.push_back(monitor.series("grad_unreduced", ("p" + std::to_string(i)).c_str()));
  for (int step = 0; step < 3; ++step) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < kEach; ++i) {
          const auto at = static_cast<std::size_t>(thread * kEach + i);
          monitor.observe(ids[at], {static_cast<float>(at)});
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    monitor.step();
    const std::string text =
        monitor.file("grad_unreduced_" + std::to_string(step) + "-" + std::to_string(step) + ".csv");
    CHECK(std::count(text.begin(), text.end(), '\n') == 1 + kThreads * kEach);
    CHECK(text.find(",p199," + std::to_string(step) + ",199.0,") != std::string::npos);
  }
}

TEST_CASE("A child process records nothing") {
  Monitor monitor(Json::object());
  const auto id = monitor.series("grad_reduced", "a");
  monitor.observe(id, {1});
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    msprobe_step_result result{};
    result.struct_size = sizeof result;
    const bool silent = monitor.observe(id, {1}) == MSPROBE_SKIP &&
                        msprobe_monitor_step_end(monitor.engine, &result) == MSPROBE_SKIP &&
                        msprobe_monitor_close(monitor.engine) == MSPROBE_SKIP;
    ::_exit(silent ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(monitor.step().written == 1);
}

TEST_CASE("Calls that are wrong are refused") {
  msprobe_monitor* none = nullptr;
  CHECK(msprobe_monitor_open(nullptr, R"({"eps": 1})", nullptr, &none) == MSPROBE_INVALID);
  CHECK(std::string(msprobe_last_error()) == "TypeError: eps should be a float");
  CHECK(msprobe_monitor_open("no/such/file.json", nullptr, nullptr, &none) == MSPROBE_INVALID_FILE);
  CHECK(msprobe_monitor_step_end(nullptr, nullptr) == MSPROBE_INVALID);
  CHECK(*msprobe_monitor_collecting(nullptr) == 0);
  Monitor monitor(Json::object());
  CHECK(monitor.observe(7, {1}) == MSPROBE_INVALID);
  msprobe_series wrong{sizeof(msprobe_series), "no_such_thing", 0, -1, "a", nullptr};
  std::uint32_t id = 0;
  CHECK(msprobe_monitor_series(monitor.engine, &wrong, &id) == MSPROBE_INVALID);
  const char* json = nullptr;
  CHECK(msprobe_monitor_setting(monitor.engine, "no_such_key", &json) == MSPROBE_SKIP);
}

}  // namespace msprobe::monitor_engine_test
