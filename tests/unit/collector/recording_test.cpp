// SPDX-License-Identifier: Apache-2.0
// Order, numbers, parents and contents of what is recorded.
#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "unit/collector/recording.hpp"

namespace msprobe::collector_recording_test {

using namespace msprobe;
using namespace msprobe::test;

namespace {

using Names = std::vector<std::string>;

Json parent(const Recording& recording, const std::string& entry) {
  return recording.json("construct.json").at(entry);
}

}  // namespace

TEST_CASE("a call in a module: the module's entry comes after it, and is its parent") {
  Recording recording;
  REQUIRE(recording.start() == MSPROBE_RECORDING);
  const msprobe_event block = recording.enter("Module.b1.Blk");
  recording.input(block);
  const msprobe_event linear = recording.enter("Module.b1.l1.Linear");
  recording.input(linear);
  recording.call("Functional.linear");
  recording.output(linear);
  recording.leave(linear);
  recording.call("Tensor.add");
  recording.output(block);
  recording.leave(block);
  recording.call("Tensor.sum");
  recording.stop();
  CHECK(recording.entries() == Names{"Functional.linear.0.forward", "Module.b1.l1.Linear.forward.0",
                                     "Tensor.add.0.forward", "Module.b1.Blk.forward.0",
                                     "Tensor.sum.0.forward"});
  CHECK(recording.json("construct.json") ==
        Json({{"Module.b1.Blk.forward.0", nullptr},
              {"Module.b1.l1.Linear.forward.0", "Module.b1.Blk.forward.0"},
              {"Functional.linear.0.forward", "Module.b1.l1.Linear.forward.0"},
              {"Tensor.add.0.forward", "Module.b1.Blk.forward.0"},
              {"Tensor.sum.0.forward", nullptr}}));
}

TEST_CASE("numbers count the calls of a name, of all threads, and begin anew with each step") {
  Recording recording;
  recording.start();
  recording.call("Tensor.mul");
  std::thread([&] { recording.call("Tensor.mul"); }).join();
  recording.call("Tensor.add");
  recording.stop();
  recording.start();  // goes on in the same step
  recording.call("Tensor.mul");
  recording.step();
  CHECK(recording.entries() == Names{"Tensor.mul.0.forward", "Tensor.mul.1.forward", "Tensor.add.0.forward",
                                     "Tensor.mul.2.forward"});
  recording.start();
  recording.call("Tensor.mul");
  recording.step();
  CHECK(recording.entries(1) == Names{"Tensor.mul.0.forward"});
}

TEST_CASE("a call within another is neither recorded nor counted") {
  Recording recording;
  recording.start();
  const msprobe_event outer = recording.enter("Functional.softmax");
  recording.input(outer);
  const msprobe_event inner = recording.enter("Tensor.exp");
  CHECK(inner.nested == 1);
  CHECK(inner.wants == 0);
  const msprobe_event innermost = recording.enter("Tensor.log");
  recording.leave(innermost);
  recording.leave(inner);
  CHECK(recording.enter("Tensor.exp").nested == 1);  // and never left
  recording.output(outer);
  recording.leave(outer);
  recording.call("Tensor.exp");
  recording.stop();
  CHECK(recording.entries() == Names{"Functional.softmax.0.forward", "Tensor.exp.0.forward"});
}

TEST_CASE("an exception ends what it leaves, and nothing else") {
  Recording recording;
  recording.start();
  const msprobe_event block = recording.enter("Module.b1.Blk");
  recording.input(block);
  const msprobe_event inner = recording.enter("Module.b1.l1.Linear");
  recording.input(inner);
  const msprobe_event api = recording.enter("Functional.linear");
  recording.input(api);
  recording.enter("Tensor.exp");
  // Only the outermost sees it.
  recording.leave(block);
  recording.call("Tensor.exp");
  recording.stop();
  CHECK(recording.entries() == Names{"Functional.linear.0.forward", "Module.b1.l1.Linear.forward.0",
                                     "Module.b1.Blk.forward.0", "Tensor.exp.0.forward"});
  CHECK(keys_of(recording.data()["Functional.linear.0.forward"]) == Names{"input_args"});
  CHECK(parent(recording, "Tensor.exp.0.forward") == nullptr);
}

TEST_CASE("backward calls have the parents of their forward calls") {
  Recording recording;
  recording.start();
  const msprobe_event block = recording.enter("Module.b1.Blk");
  const msprobe_event relu = recording.call("Functional.relu");
  recording.leave(block);
  const msprobe_event again = recording.enter("Module.b1.Blk");
  recording.leave(again);
  recording.stop();
  // After stop(), in another thread, the block's own after its children's.
  std::thread([&] {
    recording.backward(relu);
    recording.backward(again);
    recording.backward(block);
  }).join();
  recording.step();
  CHECK(parent(recording, "Functional.relu.0.backward") == "Module.b1.Blk.backward.0");
  CHECK(parent(recording, "Module.b1.Blk.backward.1") == nullptr);
  CHECK(recording.entries() == Names{"Functional.relu.0.forward", "Functional.relu.0.backward",
                                     "Module.b1.Blk.backward.1", "Module.b1.Blk.backward.0"});
  CHECK(keys_of(recording.data()["Functional.relu.0.backward"]) == Names{"input", "output"});
}

TEST_CASE("a backward of an earlier step keeps its number; twice through one call is one entry") {
  Recording recording;
  recording.start();
  recording.call("Functional.relu");
  const msprobe_event late = recording.call("Functional.relu");
  recording.step();
  recording.backward(late);  // no step is recorded now
  recording.start();
  recording.backward(late);
  msprobe_event event = {};
  REQUIRE(msprobe_enter_backward(recording.session, &late, &event) == MSPROBE_OK);
  recording.input(event, 7);
  recording.leave(event);
  recording.step();
  CHECK(recording.entries(1) == Names{"Functional.relu.1.backward"});
  CHECK(recording.data(1)["Functional.relu.1.backward"]["input"][0]["value"] == 7);
  CHECK(recording.json("construct.json", 1).size() == 1);
}

TEST_CASE("the parent of a module in another thread is the open module around it") {
  Recording recording;
  recording.start();
  const msprobe_event block = recording.enter("Module.net.b1.Blk");
  std::thread([&] {
    recording.leave(recording.enter("Module.net.b1.l1.Linear"));
    recording.leave(recording.enter("Module.net.other.Linear"));
  }).join();
  recording.leave(block);
  recording.stop();
  CHECK(parent(recording, "Module.net.b1.l1.Linear.forward.0") == "Module.net.b1.Blk.forward.0");
  CHECK(parent(recording, "Module.net.other.Linear.forward.0") == nullptr);
}

TEST_CASE("gradients of parameters: one entry an accumulation, counted by the parameter that came first") {
  Recording recording;
  recording.start();
  for (int batch = 0; batch < 3; ++batch) {
    recording.gradient("Module.fc.Linear", "bias", 2);
    recording.call("Tensor.between");
    recording.gradient("Module.fc.Linear", "weight", 2);
  }
  recording.gradient("Module.late.Linear", "weight");
  recording.step();
  CHECK(recording.entries() == Names{"Module.fc.Linear.parameters_grad.0", "Tensor.between.0.forward",
                                     "Module.fc.Linear.parameters_grad.1", "Tensor.between.1.forward",
                                     "Module.fc.Linear.parameters_grad.2", "Tensor.between.2.forward",
                                     "Module.late.Linear.parameters_grad.0"});
  const Json entry = recording.data()["Module.fc.Linear.parameters_grad.1"];
  CHECK(keys_of(entry) == Names{"bias", "weight"});
  CHECK(entry["bias"].size() == 1);
  CHECK(entry["bias"][0]["Norm"] == 5.0);
}

TEST_CASE("names as parents of calls outside of modules, and micro steps") {
  Recording recording;
  recording.start();
  CHECK(msprobe_set_pseudo_parent(recording.session, "optimizer") == MSPROBE_OK);
  recording.call("Tensor.add");
  const msprobe_event module = recording.enter("Module.m.M");
  recording.call("Tensor.add");
  recording.leave(module);
  CHECK(msprobe_set_pseudo_parent(recording.session, nullptr) == MSPROBE_OK);
  recording.call("Tensor.add");
  CHECK(msprobe_set_micro_step(recording.session, 2) == MSPROBE_OK);
  recording.call("Tensor.add");
  CHECK(msprobe_set_micro_step(recording.session, 1) == MSPROBE_OK);
  recording.stop();
  const Json construct = recording.json("construct.json");
  CHECK(construct["optimizer"] == nullptr);
  CHECK(construct["Tensor.add.0.forward"] == "optimizer");
  CHECK(construct["Tensor.add.1.forward"] == "Module.m.M.forward.0");
  CHECK(construct["Tensor.add.2.forward"] == nullptr);
  CHECK(construct["Tensor.add.3.forward"] == Json({nullptr, 2}));
  CHECK(construct["megatron_micro_step_number"] == 2);
}

TEST_CASE("the structure holds filtered calls, L1 has none, and without extra_info there is no file of it") {
  SUBCASE("list") {
    Recording recording("{}", R"({"list": ["relu"]})");
    recording.start();
    CHECK(recording.enter("Functional.linear").entry == 0);
    recording.stop();
    CHECK(recording.data().empty());
    CHECK(keys_of(recording.json("construct.json")) == Names{"Functional.linear.0.forward"});
    CHECK(recording.json("dump.json")["list"] == Json::array({"relu"}));
    CHECK_FALSE(recording.json("dump.json").contains("scope"));
  }
  SUBCASE("L1") {
    Recording recording(R"({"level": "L1"})");
    recording.start();
    recording.call("Functional.linear");
    recording.stop();
    CHECK(recording.data().size() == 1);
    CHECK(read_file(recording.path("construct.json")) == "{}");
  }
  SUBCASE("extra_info") {
    Recording recording(R"({"extra_info": false})");
    recording.start();
    const msprobe_event event = recording.call("Functional.linear");
    CHECK((event.wants & MSPROBE_WANT_STACK) == 0);
    recording.stop();
    CHECK(recording.data().size() == 1);
    CHECK_FALSE(std::filesystem::exists(recording.path("construct.json")));
    CHECK_FALSE(std::filesystem::exists(recording.path("stack.json")));
  }
  SUBCASE("task structure") {
    Recording recording(R"({"task": "structure"})");
    recording.start();
    const msprobe_event event = recording.call("Functional.linear");
    CHECK(event.wants == (MSPROBE_WANT_BACKWARD | MSPROBE_WANT_STACK));
    recording.stop();
    CHECK(recording.data().empty());
    CHECK(recording.json("construct.json").size() == 1);
  }
}

TEST_CASE("data_mode chooses sections; what has none left is no entry") {
  const auto sections = [](const char* mode) {
    Recording recording("{}", R"({"data_mode": )" + std::string(mode) + "}");
    recording.start();
    const msprobe_event event = recording.enter("Module.m.M");
    recording.input(event);
    recording.section(event, MSPROBE_KWARGS);
    recording.output(event);
    recording.section(event, MSPROBE_PARAMETERS);
    recording.leave(event);
    recording.backward(event);
    recording.gradient("Module.m.M", "w");
    recording.step();
    std::string all;
    const Json data = recording.data();
    for (const auto& [name, entry] : data.items()) {
      for (const std::string& key : keys_of(entry)) all += key + " ";
    }
    return all;
  };
  CHECK(sections(R"(["all"])") == "input_args input_kwargs output parameters input output w ");
  CHECK(sections(R"(["forward"])") == "input_args input_kwargs output parameters ");
  CHECK(sections(R"(["backward"])") == "input output w ");
  CHECK(sections(R"(["input"])") == "input_args input_kwargs input w ");
  CHECK(sections(R"(["forward", "output"])") == "output parameters ");
}

TEST_CASE("a section that comes again takes the place of the first while the entry is held") {
  Recording recording;
  recording.start();
  const msprobe_event event = recording.enter("Distributed.all_reduce");
  CHECK(msprobe_hold(recording.session, &event) == MSPROBE_OK);
  recording.input(event, 1);
  recording.output(event, 2);
  recording.leave(event);
  recording.call("Tensor.add");
  recording.stop();
  CHECK(recording.data()["Distributed.all_reduce.0.forward"]["output"][0]["value"] == 2);
  recording.output(event, 3);
  CHECK(msprobe_release(recording.session, &event) == MSPROBE_OK);
  CHECK_FALSE(recording.section(event, MSPROBE_OUTPUT));
  recording.step();
  CHECK(recording.entries() == Names{"Distributed.all_reduce.0.forward", "Tensor.add.0.forward"});
  CHECK(recording.data()["Distributed.all_reduce.0.forward"]["output"][0]["value"] == 3);
}

TEST_CASE("an output with named fields is an object") {
  Recording recording;
  recording.start();
  const msprobe_event event = recording.enter("Module.m.M");
  msprobe_builder* builder = nullptr;
  REQUIRE(msprobe_section_begin(recording.session, &event, MSPROBE_NAMED_OUTPUT, &builder) == MSPROBE_OK);
  CHECK(msprobe_add_int(builder, "first", "int", 1) == MSPROBE_OK);
  CHECK(msprobe_builder_commit(builder) == MSPROBE_OK);
  recording.leave(event);
  recording.stop();
  CHECK(recording.data().at("Module.m.M.forward.0").at("output") ==
        Json({{"first", {{"type", "int"}, {"value", 1}}}}));
}

TEST_CASE("elements that come later are recorded as those that are there") {
  const std::vector<float> values = {1, -2, 3, 4, 5, -6};
  for (const char* section : {R"({})", R"({"summary_mode": "md5"})", R"({"summary_mode": "xor"})",
                              R"({"summary_mode": "md5", "slice": [{"dim": 0, "begin": 1}]})"}) {
    Recording recording(R"({"task": "tensor"})", section);
    recording.start();
    msprobe_info info = {};
    info.struct_size = sizeof info;
    CHECK(msprobe_session_info(recording.session, &info) == MSPROBE_OK);
    CHECK(info.takes_later == 1);
    const msprobe_event event = recording.enter("Tensor.add");
    const std::array<std::int64_t, 2> shape = {3, 2};
    const std::array<std::int64_t, 2> turned = {1, 3};
    msprobe_tensor now = Tensor{.data = values.data(), .shape = shape}.descriptor();
    now.strides = turned.data();
    msprobe_tensor later = now;
    later.data = nullptr;
    later.flags |= MSPROBE_TENSOR_LATER;
    std::uint64_t slot = 0;
    {
      const Section input = recording.section(event, MSPROBE_INPUT);
      CHECK(msprobe_add_tensor(input.get(), nullptr, &now, nullptr) == MSPROBE_OK);
      CHECK(msprobe_add_tensor(input.get(), nullptr, &later, &slot) == MSPROBE_OK);
      msprobe_tensor both = later;
      both.data = values.data();
      CHECK(msprobe_add_tensor(input.get(), nullptr, &both, nullptr) == MSPROBE_INVALID);
    }
    recording.leave(event);
    CHECK(msprobe_flush(recording.session) == MSPROBE_OK);
    CHECK(recording.data()["Tensor.add.0.forward"]["input_args"][1].value("Max", Json()) == nullptr);
    msprobe_tensor other = now;
    other.dtype = MSPROBE_INT32;
    CHECK(msprobe_fill_tensor(recording.session, slot, &other) == MSPROBE_INVALID);
    other = now;
    other.ndim = 1;
    CHECK(msprobe_fill_tensor(recording.session, slot, &other) == MSPROBE_INVALID);
    CHECK(msprobe_fill_tensor(recording.session, slot, &later) == MSPROBE_INVALID);
    CHECK(msprobe_fill_tensor(recording.session, slot, &now) == MSPROBE_OK);
    CHECK(msprobe_fill_tensor(recording.session, slot, &now) == MSPROBE_SKIP);
    recording.step();
    Json args = recording.data()["Tensor.add.0.forward"]["input_args"];
    // In row-major order; without the first row, if that is cut off.
    const std::array<float, 6> elements = {1, 4, -2, 5, 3, -6};
    const std::size_t first = args[1]["shape"][0] == 3 ? 0 : 2;
    const std::string bytes(reinterpret_cast<const char*>(elements.data() + first), 4 * (6 - first));
    for (Json& one : args) {
      const std::string file =
          read_file(recording.path("dump_tensor_data/" + one["data_name"].get<std::string>()));
      CHECK(file.find(bytes) != std::string::npos);
      one.erase("data_name");
    }
    CHECK(args[0] == args[1]);
  }
}

TEST_CASE("numbers that come later") {
  Recording recording;
  recording.start();
  const msprobe_event event = recording.enter("Tensor.add");
  const std::array<std::int64_t, 1> shape = {3};
  msprobe_tensor tensor = Tensor{.dtype = MSPROBE_FLOAT16, .shape = shape}.descriptor();
  tensor.flags |= MSPROBE_TENSOR_DEFERRED;
  std::array<std::uint64_t, 2> slots = {};
  {
    const Section input = recording.section(event, MSPROBE_INPUT);
    for (std::uint64_t& slot : slots)
      CHECK(msprobe_add_tensor(input.get(), nullptr, &tensor, &slot) == MSPROBE_OK);
  }
  recording.leave(event);
  recording.call("Tensor.mul");
  CHECK(msprobe_flush(recording.session) == MSPROBE_OK);
  CHECK(recording.data()["Tensor.add.0.forward"]["input_args"][1]["Max"] == nullptr);
  msprobe_statistics statistics = {};
  statistics.struct_size = sizeof statistics;
  statistics.max = 3;
  statistics.min = 1;
  statistics.mean = 2;
  statistics.norm = 4;
  statistics.count = 3;
  CHECK(msprobe_fill_statistics(recording.session, slots[1], &statistics) == MSPROBE_OK);
  CHECK(msprobe_fill_statistics(recording.session, slots[1], &statistics) == MSPROBE_SKIP);
  recording.step();
  const Json args = recording.data()["Tensor.add.0.forward"]["input_args"];
  CHECK(args[0] == Json({{"type", "torch.Tensor"},
                         {"dtype", "torch.float16"},
                         {"shape", {3}},
                         {"Max", nullptr},
                         {"Min", nullptr},
                         {"Mean", nullptr},
                         {"Norm", nullptr},
                         {"requires_grad", false}}));
  CHECK(args[1]["Norm"] == 4.0);
  CHECK(recording.entries() == Names{"Tensor.add.0.forward", "Tensor.mul.0.forward"});
}

TEST_CASE("entries that share a stack share its text") {
  Recording recording;
  recording.start();
  const char* frames[] = {"File a.py, line 1, in f, \n x", "File b.py, line 2, in g, \n \"\xC3\xA9\""};
  for (const char* name : {"Tensor.a", "Tensor.b", "Tensor.c"}) {
    const msprobe_event event = recording.call(name);
    const std::uint64_t key = name[7] == 'b' ? 2 : 1;
    if (msprobe_use_stack(recording.session, &event, key) == MSPROBE_SKIP) {
      CHECK(msprobe_define_stack(recording.session, key, frames, key) == MSPROBE_OK);
      CHECK(msprobe_use_stack(recording.session, &event, key) == MSPROBE_OK);
    }
  }
  recording.stop();
  CHECK(recording.json("stack.json") ==
        Json({{"0", {{"Tensor.a.0.forward", "Tensor.c.0.forward"}, {frames[0]}}},
              {"1", {{"Tensor.b.0.forward"}, {frames[0], frames[1]}}}}));
}

TEST_CASE("steps and ranks that are asked for") {
  Recording recording(R"({"step": [1, 3], "rank": [0]})");
  const auto next = [&] {
    const msprobe_decision decision = recording.start();
    recording.call("Tensor.add");
    recording.step();
    return decision;
  };
  CHECK(next() == MSPROBE_NOT_NOW);
  CHECK(next() == MSPROBE_RECORDING);
  CHECK(next() == MSPROBE_NOT_NOW);
  CHECK(next() == MSPROBE_RECORDING);
  int first = 0;
  msprobe_decision decision = MSPROBE_NOT_NOW;
  CHECK(msprobe_start(recording.session, &decision, &first) == MSPROBE_OK);
  CHECK(decision == MSPROBE_ALL_DONE);
  CHECK(first == 1);
  CHECK(msprobe_start(recording.session, &decision, &first) == MSPROBE_OK);
  CHECK(first == 0);
  CHECK(recording.folder.names() == Names{"step1", "step3"});
  CHECK(msprobe_set_rank(recording.session, 4) == MSPROBE_OK);
  CHECK(msprobe_set_init_step(recording.session, 1) == MSPROBE_OK);
}

TEST_CASE("a folder that comes again within the step goes on, and steps can begin anew") {
  Recording recording;
  const auto record = [&](const std::string& folder, const char* name) {
    REQUIRE(msprobe_set_dump_path(recording.session, (recording.folder.path() + "/" + folder).c_str()) ==
            MSPROBE_OK);
    CHECK(recording.start() == MSPROBE_RECORDING);
    const msprobe_event event = recording.call(name);
    recording.stop();
    return event;
  };
  const auto names = [&](const std::string& folder) {
    const std::string path = recording.folder.path() + "/" + folder + "/step0/rank0/dump.json";
    return keys_of(Json::parse(read_file(path)).at("data"));
  };
  const msprobe_event before = record("a", "Tensor.add");
  record("b", "Tensor.add");
  recording.input(before);  // of a folder that rests
  record("a", "Tensor.mul");
  CHECK(names("a") == Names{"Tensor.add.0.forward", "Tensor.mul.0.forward"});
  CHECK(names("b") == Names{"Tensor.add.1.forward"});
  CHECK(msprobe_restart_step(recording.session) == MSPROBE_OK);
  record("c", "Tensor.add");
  CHECK(names("c") == Names{"Tensor.add.0.forward"});
  msprobe_info info = {};
  info.struct_size = sizeof info;
  CHECK(msprobe_session_info(recording.session, &info) == MSPROBE_OK);
  CHECK(info.entries == 4);
  CHECK(msprobe_set_dump_path(recording.session, "") < 0);
  CHECK(msprobe_set_dump_path(recording.session, nullptr) < 0);
}

TEST_CASE("a rank that is known late gives the folder its name, and the file") {
  const ScratchDirectory folder;
  const Json config = {{"task", "tensor"}, {"level", "L1"}, {"dump_path", folder.path()}};
  Recorder recorder(config.dump().c_str());
  REQUIRE(recorder.start());
  CHECK(folder / "step0" != "");
  const std::string process = folder / ("step0/proc" + std::to_string(::getpid()));
  CHECK(std::filesystem::exists(process + "/dump.json"));
  CHECK(recorder.set_rank(5));
  CHECK_FALSE(std::filesystem::exists(process));
  {
    Call call = recorder.api("Tensor.add");
    call.input().add(std::int64_t{1});
  }
  recorder.step();
  const Json dump = Json::parse(read_file(folder / "step0/rank5/dump.json"));
  CHECK(dump["dump_data_dir"] == folder / "step0/rank5/dump_tensor_data");
  CHECK(dump["data"].size() == 1);
}

TEST_CASE("names that no reader takes as those of files are replaced, and told by data_name") {
  Recording recording(R"({"task": "tensor"})");
  recording.start();
  const std::array<std::int64_t, 1> shape = {2};
  const std::array<float, 2> values = {3, 4};
  const std::string longest(400, 'k');
  const msprobe_event event = recording.enter("Tensor.add");
  recording.section(event, MSPROBE_KWARGS)
      .add(Tensor{.data = values.data(), .shape = shape}, "a b/../c")
      .add(Tensor{.data = values.data(), .shape = shape}, "a b_.._c")
      .add(Tensor{.data = values.data(), .shape = shape}, longest.c_str());
  recording.leave(event);
  recording.stop();
  std::vector<std::string> names;
  const Json kwargs = recording.data()["Tensor.add.0.forward"]["input_kwargs"];
  for (const auto& [key, tensor] : kwargs.items()) {
    names.push_back(tensor["data_name"]);
    CHECK(names.back().size() <= 255);
    CHECK(std::filesystem::exists(recording.path("dump_tensor_data/" + names.back())));
  }
  CHECK(names.size() == 3);
  CHECK(names[0].starts_with("Tensor.add.0.forward.kwargs.a_b_.._c-"));
  CHECK(names[0] != names[1]);
}

TEST_CASE("what cannot be: every misuse is an answer") {
  Recording recording;
  recording.start();
  const msprobe_event event = recording.enter("Tensor.add");
  msprobe_builder* builder = nullptr;
  REQUIRE(msprobe_section_begin(recording.session, &event, MSPROBE_KWARGS, &builder) == MSPROBE_OK);
  CHECK(msprobe_add_int(builder, nullptr, "int", 1) == MSPROBE_INVALID);
  CHECK(msprobe_close(builder) == MSPROBE_INVALID);
  CHECK(msprobe_add_json(builder, "j", "{\"a\": [1,", 9) == MSPROBE_INVALID);
  CHECK(msprobe_add_json(builder, "j", "1 2", 3) == MSPROBE_INVALID);
  CHECK(std::string(msprobe_last_error()) == "a value is not JSON");
  CHECK(msprobe_add_json(builder, "j", " {\"a\": [1, NaN]} ", 17) == MSPROBE_OK);
  msprobe_tensor tensor = {};
  CHECK(msprobe_add_tensor(builder, "t", &tensor, nullptr) == MSPROBE_INVALID);
  tensor.struct_size = sizeof tensor;
  tensor.ndim = 65;
  CHECK(msprobe_add_tensor(builder, "t", &tensor, nullptr) == MSPROBE_INVALID);
  const std::array<std::int64_t, 2> huge = {INT64_MAX / 2, 16};
  tensor.ndim = 2;
  tensor.shape = huge.data();
  CHECK(msprobe_add_tensor(builder, "t", &tensor, nullptr) == MSPROBE_INVALID);
  for (int depth = 0; depth < 1000; ++depth) CHECK(msprobe_open_object(builder, "k") == MSPROBE_OK);
  CHECK(msprobe_add_null(builder, "deep") == MSPROBE_OK);
  CHECK(msprobe_builder_commit(builder) == MSPROBE_OK);
  CHECK(msprobe_start(nullptr, nullptr, nullptr) == MSPROBE_INVALID);
  CHECK(msprobe_enter(recording.session, MSPROBE_KIND_API, 123456789, nullptr) == MSPROBE_INVALID);
  msprobe_event other = {};
  CHECK(msprobe_enter(recording.session, MSPROBE_KIND_API, 4'000'000'000U, &other) == MSPROBE_INVALID);
  recording.stop();
  const std::string dump = read_file(recording.path("dump.json"));
  CHECK(std::count(dump.begin(), dump.end(), '{') == std::count(dump.begin(), dump.end(), '}'));
}

TEST_CASE("threads that record at the same time lose nothing") {
  constexpr int kThreads = 4;
  constexpr int kCalls = 200;
  Recording recording(R"({"task": "tensor"})", R"({"summary_mode": "md5"})");
  recording.start();
  const std::array<std::int64_t, 1> shape = {3};
  const std::array<float, 3> values = {1, 2, 3};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::uint32_t module = Recording::number(("Module.m" + std::to_string(t) + ".M").c_str());
      const std::uint32_t api = Recording::number("Tensor.add");
      for (int i = 0; i < kCalls; ++i) {
        Call outer(recording.session, MSPROBE_KIND_MODULE, module);
        {
          Call call(recording.session, MSPROBE_KIND_API, api);
          call.input().add(Tensor{.data = values.data(), .shape = shape});
          Call(recording.session, MSPROBE_KIND_API, api);
        }
        outer.output().add(std::int64_t{i});
        if (i % 50 == t) msprobe_flush(recording.session);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(msprobe_set_rank(recording.session, 1) == MSPROBE_OK);
  CHECK(msprobe_set_rank(recording.session, 0) == MSPROBE_OK);
  recording.step();
  const Json data = recording.data();
  CHECK(data.size() == 2 * kThreads * kCalls);
  CHECK(data["Tensor.add.799.forward"]["input_args"][0]["Norm"] == 3.7416574954986572);
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(recording.path("dump_tensor_data")))
    files += file.file_size() > 0 ? 1 : 0;
  CHECK(files == kThreads * kCalls);
}

}  // namespace msprobe::collector_recording_test
