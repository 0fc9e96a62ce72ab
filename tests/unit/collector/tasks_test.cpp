// SPDX-License-Identifier: Apache-2.0
// The data that the tasks and levels keep besides the record of calls.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "unit/collector/recording.hpp"

namespace msprobe::collector_tasks_test {

using namespace msprobe;
using namespace msprobe::test;

namespace {

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("saved values of level debug, with the gradients that arrive") {
  Recording recording(R"({"level": "debug", "task": "tensor"})");
  CHECK(recording.start() == MSPROBE_NOT_NOW);
  const std::array<std::int64_t, 1> shape = {2};
  const std::array<float, 2> values = {3, 4};
  const Tensor tensor = {.data = values.data(), .shape = shape, .requires_grad = true};
  std::uint64_t gradient = 0;
  for (int count = 0; count < 2; ++count) {
    msprobe_builder* builder = nullptr;
    REQUIRE(msprobe_save_begin(recording.session, "y", 1, &builder, &gradient) == MSPROBE_OK);
    Section section(builder);
    CHECK(msprobe_open_object(builder, nullptr) == MSPROBE_OK);
    section.add(tensor, "a");
    CHECK(msprobe_open_list(builder, "b") == MSPROBE_OK);
    section.add(std::int64_t{1}).add(tensor);
  }
  const msprobe_tensor descriptor = tensor.descriptor();
  CHECK(msprobe_fill_gradient(recording.session, gradient, "b.1", &descriptor) == MSPROBE_OK);
  CHECK(msprobe_fill_gradient(recording.session, gradient, "b.0", &descriptor) == MSPROBE_INVALID);
  recording.step();
  const Json debug = recording.json("debug.json");
  CHECK(debug["level"] == "debug");
  CHECK(keys_of(debug["data"]) == Names{"y.0.debug", "y_grad.0.debug", "y.1.debug", "y_grad.1.debug"});
  CHECK(debug["data"]["y.1.debug"]["b"][1]["data_name"] == "y.1.debug.b.1.pt");
  CHECK(debug["data"]["y_grad.0.debug"] == Json({{"a", nullptr}, {"b", {nullptr, nullptr}}}));
  CHECK(debug["data"]["y_grad.1.debug"]["b"][1]["Norm"] == 5.0);
  CHECK(debug["data"]["y_grad.1.debug"]["b"][1]["data_name"] == "y_grad.1.debug.b.1.pt");
  CHECK(std::filesystem::exists(recording.path("dump_tensor_data/y_grad.1.debug.b.1.pt")));
  CHECK_FALSE(std::filesystem::exists(recording.path("dump.json")));
}

TEST_CASE("task overflow_check keeps only calls with infinite or NaN elements, with their tensors") {
  Recording recording(R"({"task": "overflow_check"})", R"({"overflow_nums": 2})");
  recording.start();
  const std::array<std::int64_t, 1> shape = {2};
  const std::array<float, 2> good = {3, 4};
  const std::array<float, 2> bad = {1, std::numeric_limits<float>::infinity()};
  const auto call = [&](const std::array<float, 2>& in, const std::array<float, 2>& out) {
    const msprobe_event event = recording.enter("Tensor.div");
    recording.section(event, MSPROBE_INPUT).add(Tensor{.data = in.data(), .shape = shape});
    recording.section(event, MSPROBE_OUTPUT).add(Tensor{.data = out.data(), .shape = shape});
    recording.leave(event);
  };
  call(good, good);
  call(good, bad);
  recording.stop();
  recording.start();
  call(good, good);
  CHECK(*msprobe_session_running(recording.session) == 1);
  call(bad, good);
  CHECK(*msprobe_session_running(recording.session) == 0);
  call(bad, bad);
  recording.step();
  CHECK(recording.start() == MSPROBE_ALL_DONE);
  // "Infinity" is no JSON to the reader of these tests.
  const std::string dump = read_file(recording.path("dump.json"));
  CHECK(dump.find("Tensor.div.0") == std::string::npos);
  CHECK(dump.find("Tensor.div.1.forward") < dump.find("Tensor.div.3.forward"));
  CHECK(dump.find("Tensor.div.2") == std::string::npos);
  CHECK(dump.find("Tensor.div.4") == std::string::npos);
  CHECK(std::filesystem::exists(recording.path("dump_tensor_data/Tensor.div.1.forward.input.0.pt")));
  CHECK(std::filesystem::exists(recording.path("dump_tensor_data/Tensor.div.3.forward.output.0.pt")));
  CHECK_FALSE(std::filesystem::exists(recording.path("dump_tensor_data/Tensor.div.0.forward.input.0.pt")));
}

TEST_CASE("compared with another dump: the tensors of entries in which one differs are saved") {
  const auto run = [](Recording& recording, float input, float output) {
    const std::array<std::int64_t, 1> shape = {1};
    const msprobe_event event = recording.enter("Functional.f");
    recording.section(event, MSPROBE_INPUT).add(Tensor{.data = &input, .shape = shape});
    recording.section(event, MSPROBE_OUTPUT).add(Tensor{.data = &output, .shape = shape});
    recording.leave(event);
  };
  Recording reference("{}", R"({"summary_mode": "md5"})");
  reference.start();
  for (int i = 0; i < 5; ++i) run(reference, 1, 2);
  reference.step();
  Recording recording(R"({"task": "tensor"})", R"({"summary_mode": "md5", "diff_nums": 2, "bench_path": ")" +
                                                   reference.folder.path() + "\"}");
  REQUIRE(recording.start() == MSPROBE_RECORDING);
  run(recording, 1, 2);
  run(recording, 3, 2);
  run(recording, 1, 2);
  CHECK(*msprobe_session_running(recording.session) == 1);
  run(recording, 1, 6);
  CHECK(*msprobe_session_running(recording.session) == 0);
  recording.step();
  CHECK(recording.start() == MSPROBE_ALL_DONE);
  const Json data = recording.data();
  CHECK(data.size() == 4);
  std::string saved;
  for (const auto& [name, entry] : data.items()) {
    const Json& tensor = entry["output"][0];
    CHECK(keys_of(tensor).back() == "data_name");
    saved +=
        std::filesystem::exists(recording.path("dump_tensor_data/" + tensor["data_name"].get<std::string>()))
            ? "1"
            : "0";
  }
  CHECK(saved == "0101");
}

TEST_CASE("compared with another dump: each tensor of an entry counts, forward and backward") {
  const std::array<std::int64_t, 1> shape = {1};
  const auto run = [&](Recording& recording, int other) {
    const auto value = [&](int place) { return place == other ? 7.0F : 1.0F; };
    const std::array<float, 4> values = {value(0), value(1), value(2), value(3)};
    const auto tensor = [&](int place) { return Tensor{.data = &values.at(place), .shape = shape}; };
    const msprobe_event event = recording.enter("Functional.f");
    recording.section(event, MSPROBE_INPUT).add(tensor(0));
    recording.section(event, MSPROBE_KWARGS).add(tensor(1), "mask");
    msprobe_builder* builder = nullptr;
    REQUIRE(msprobe_section_begin(recording.session, &event, MSPROBE_OUTPUT, &builder) == MSPROBE_OK);
    CHECK(msprobe_open_list(builder, nullptr) == MSPROBE_OK);
    Section(builder).add(std::int64_t{3}).add(tensor(2));
    recording.leave(event);
    msprobe_event backward = {};
    REQUIRE(msprobe_enter_backward(recording.session, &event, &backward) == MSPROBE_OK);
    recording.section(backward, MSPROBE_INPUT).add(tensor(3));
    recording.leave(backward);
  };
  Recording reference("{}", R"({"summary_mode": "md5"})");
  reference.start();
  run(reference, -1);
  reference.step();
  const std::array<std::string, 4> files = {"forward.input.0", "forward.kwargs.mask", "forward.output.0.1",
                                            "backward.input.0"};
  for (int other = 0; other < 5; ++other) {
    CAPTURE(other);
    Recording recording(
        R"({"task": "tensor"})",
        R"({"summary_mode": "md5", "diff_nums": -1, "bench_path": ")" + reference.folder.path() + "\"}");
    REQUIRE(recording.start() == MSPROBE_RECORDING);
    run(recording, other);
    recording.step();
    for (int place = 0; place < 4; ++place) {
      CAPTURE(place);
      const bool of_its_entry = other < 4 && (place == 3) == (other == 3);
      const std::string file = "dump_tensor_data/Functional.f.0." + files.at(place) + ".pt";
      CHECK(std::filesystem::exists(recording.path(file)) == of_its_entry);
    }
  }
}

TEST_CASE("compared with another dump that lacks the step: the reason names the option") {
  Recording reference("{}", R"({"summary_mode": "md5"})");
  Recording recording(R"({"task": "tensor"})",
                      R"({"summary_mode": "md5", "bench_path": ")" + reference.folder.path() + "\"}");
  msprobe_decision decision = MSPROBE_NOT_NOW;
  CHECK(msprobe_start(recording.session, &decision, nullptr) < 0);
  CHECK(std::string(msprobe_last_error()).starts_with("bench_path: "));
}

}  // namespace msprobe::collector_tasks_test
