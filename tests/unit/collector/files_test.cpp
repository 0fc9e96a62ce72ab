// SPDX-License-Identifier: Apache-2.0
// Files: whole at any moment, whatever ends the process; disks that are full; children; settings that change.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "collector/entry_store.hpp"
#include "collector/growing_file.hpp"
#include "formats/tensor_file.hpp"
#include "unit/collector/recording.hpp"

namespace msprobe::collector_files_test {

using namespace msprobe;
using namespace msprobe::test;
using collector::EntryStore;
using collector::GrowingFile;
using collector::PendingEntry;

namespace {

/// Runs `body` in a child; returns its wait status.
template <typename Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

bool has_temporary(const std::string& folder) {
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().filename().string().starts_with(".msprobe-")) return true;
  }
  return false;
}

/// Sorts the members, because their order does not matter and a list would be searched one by one.
nlohmann::json sorted(const Recording& recording, const std::string& file) {
  return nlohmann::json::parse(read_file(recording.path(file)));
}

void record_calls(msprobe_session* session, int count) {
  const std::uint32_t module = Recording::number("Module.m.M");
  const std::uint32_t api = Recording::number("Functional.linear");
  const std::array<std::int64_t, 2> shape = {2, 2};
  const std::array<float, 4> values = {1, 2, 3, 4};
  for (int i = 0; i < count; ++i) {
    Call outer(session, MSPROBE_KIND_MODULE, module);
    outer.input().add(Tensor{.data = values.data(), .shape = shape});
    for (int k = 0; k < 3; ++k) {
      Call inner(session, MSPROBE_KIND_API, api);
      inner.input().add(Tensor{.data = values.data(), .shape = shape});
      inner.output().add(Tensor{.data = values.data(), .shape = shape});
    }
    outer.output().add(Tensor{.data = values.data(), .shape = shape});
  }
}

}  // namespace

TEST_CASE("a process that is killed leaves whole files that lack at most the last of it") {
  std::size_t most = 0;
  for (int round = 0; round < 12; ++round) {
    Recording recording;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      // The child makes its own session, because that of the parent records nothing here.
      const Json config = {{"level", "mix"}, {"dump_path", recording.folder.path()}, {"risk_level", "ALL"}};
      msprobe_session* session = nullptr;
      if (msprobe_session_open(nullptr, config.dump().c_str(), nullptr, &session) != MSPROBE_OK) ::_exit(1);
      msprobe_set_rank(session, 0);
      msprobe_start(session, nullptr, nullptr);
      for (;;) record_calls(session, 1);
    }
    // Some at the very start, the others while it writes for the second, third, … time.
    if (round >= 3) {
      std::error_code error;
      for (int wait = 0; wait < 20'000; ++wait) {
        const auto size = std::filesystem::file_size(recording.path("dump.json"), error);
        if (!error && size > 1'000'000) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(7 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    if (!std::filesystem::exists(recording.path("construct.json"))) continue;
    most = std::max(most, sorted(recording, "dump.json").at("data").size());
    CHECK_NOTHROW(sorted(recording, "construct.json"));
    CHECK_NOTHROW(sorted(recording, "stack.json"));
  }
  CHECK(most > 500);
}

TEST_CASE("what is written bit by bit is what is written at once") {
  Recording often;
  Recording once;
  for (Recording* recording : {&often, &once}) {
    recording->start();
    for (int i = 0; i < 25; ++i) {
      record_calls(recording->session, 20);
      if (recording == &often) CHECK(msprobe_flush(recording->session) == MSPROBE_OK);
    }
    recording->step();
  }
  CHECK(often.entries().size() == 2000);
  CHECK(read_file(often.path("construct.json")) == read_file(once.path("construct.json")));
  CHECK(sorted(often, "dump.json").at("data") == sorted(once, "dump.json").at("data"));
  // Python's json.dump(indent=1) has no other way to say it.
  const std::string text = read_file(often.path("dump.json"));
  CHECK(often.json("dump.json").dump(1) == text);
}

TEST_CASE("writing grows with what is recorded, not with its square") {
  const ScratchDirectory folder;
  GrowingFile file(folder / "f", "{", "", 1);
  EntryStore store;
  for (int i = 0; i < 5; ++i) {
    PendingEntry& entry = store.place("e" + std::to_string(i));
    entry.set(0, "k", {'"' + std::string(1000, '1') + '"', {}});
    store.close(entry);
    store.take_final(file);
    file.write(store.provisional(file));
    CHECK(store.held() == 0);
    CHECK(file.text().empty());
  }
  CHECK(Json::parse(read_file(folder / "f")).size() == 5);
  CHECK(file.size() > 5000);
}

TEST_CASE("entries stand where they began, or where they ended") {
  const ScratchDirectory folder;
  GrowingFile file(folder / "f", "{", "", 2);
  EntryStore store;
  const auto fill = [](PendingEntry& entry) { entry.set(0, "k", {"1", {}}); };
  PendingEntry& outer = store.place("outer", true);
  PendingEntry& first = store.place("first");
  PendingEntry& inner = store.place("inner", true);
  PendingEntry& second = store.place("second");
  for (PendingEntry* entry : {&outer, &first, &inner, &second}) fill(*entry);
  store.place("without members");
  const auto order = [&] {
    store.take_final(file);
    file.write(store.provisional(file));
    return keys_of(Json::parse(read_file(folder / "f")));
  };
  // Entries that have not ended come after all others, the innermost first.
  CHECK(order() == std::vector<std::string>{"first", "second", "inner", "outer"});
  store.close(inner);
  PendingEntry& third = store.place("third");
  fill(third);
  CHECK(order() == std::vector<std::string>{"first", "second", "inner", "third", "outer"});
  store.close(second);
  store.close(first);
  CHECK(store.find(first.id) != nullptr);
  store.close_all();
  CHECK(order() == std::vector<std::string>{"first", "second", "inner", "third", "outer"});
  CHECK(store.held() == 0);
}

TEST_CASE("a file that cannot be written: the program goes on, and what there was stays") {
  Recording recording(R"({"task": "tensor"})");
  recording.start();
  record_calls(recording.session, 1);
  recording.stop();
  const std::string before = read_file(recording.path("dump.json"));
  const int status = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {64, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const Json config = {{"task", "tensor"}, {"level", "mix"}, {"dump_path", recording.folder.path()}};
    msprobe_session* session = nullptr;
    if (msprobe_session_open(nullptr, config.dump().c_str(), nullptr, &session) != MSPROBE_OK) ::_exit(1);
    msprobe_set_rank(session, 0);
    msprobe_decision decision = MSPROBE_NOT_NOW;
    if (msprobe_start(session, &decision, nullptr) != MSPROBE_FAILED || decision != MSPROBE_NOT_NOW)
      ::_exit(2);
    if (std::string(msprobe_last_error()).empty()) ::_exit(3);
    if (msprobe_session_close(session) != MSPROBE_OK) ::_exit(4);
  });
  CHECK(status == 0);
  CHECK(read_file(recording.path("dump.json")) == before);
  CHECK_FALSE(has_temporary(recording.folder.path() + "/step0/rank0"));

  const int later = in_child([&] {
    const Json config = {{"level", "mix"}, {"dump_path", recording.folder.path() + "/other"}};
    msprobe_session* session = nullptr;
    if (msprobe_session_open(nullptr, config.dump().c_str(), nullptr, &session) != MSPROBE_OK) ::_exit(1);
    msprobe_set_rank(session, 0);
    if (msprobe_start(session, nullptr, nullptr) != MSPROBE_OK) ::_exit(2);
    record_calls(session, 1);
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {600, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    if (msprobe_stop(session) != MSPROBE_FAILED) ::_exit(3);
    const rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &none);
    record_calls(session, 1);
    ::_exit(msprobe_session_close(session) == MSPROBE_OK ? 0 : 4);
  });
  CHECK(later == 0);
  const Json data = Json::parse(read_file(recording.folder / "other/step0/rank0/dump.json"))["data"];
  CHECK(data.size() == 4);
  CHECK(read_file(recording.folder / "other/step0/rank0/dump_error_info.log").find("[ERROR]") !=
        std::string::npos);
}

TEST_CASE("a folder that cannot be made is an answer of start") {
  const ScratchDirectory folder;
  put_file(folder / "file", "x");
  const Json config = {{"dump_path", folder / "file"}};
  msprobe_session* session = nullptr;
  REQUIRE(msprobe_session_open(nullptr, config.dump().c_str(), nullptr, &session) == MSPROBE_OK);
  msprobe_decision decision = MSPROBE_RECORDING;
  CHECK(msprobe_start(session, &decision, nullptr) == MSPROBE_FAILED);
  CHECK(decision == MSPROBE_NOT_NOW);
  CHECK(std::string(msprobe_last_error()).find("is not a directory") != std::string::npos);
  CHECK(msprobe_session_close(session) == MSPROBE_OK);
}

TEST_CASE("a child records nothing and leaves the files alone") {
  Recording recording(R"({"task": "tensor"})");
  recording.start();
  record_calls(recording.session, 1);  // its threads are at work
  msprobe_event open = recording.enter("Tensor.add");
  msprobe_builder* builder = nullptr;
  REQUIRE(msprobe_section_begin(recording.session, &open, MSPROBE_INPUT, &builder) == MSPROBE_OK);
  const int status = in_child([&] {
    msprobe_event event = {};
    if (msprobe_enter(recording.session, MSPROBE_KIND_API, open.name, &event) != MSPROBE_SKIP) ::_exit(1);
    if (msprobe_add_int(builder, nullptr, "int", 1) != MSPROBE_SKIP) ::_exit(2);
    if (msprobe_step(recording.session) != MSPROBE_SKIP) ::_exit(3);
    if (msprobe_session_close(recording.session) != MSPROBE_SKIP) ::_exit(4);
  });
  CHECK(status == 0);
  CHECK(msprobe_add_int(builder, nullptr, "int", 1) == MSPROBE_OK);
  CHECK(msprobe_builder_commit(builder) == MSPROBE_OK);
  recording.leave(open);
  recording.step();
  CHECK(recording.entries().size() == 5);
}

TEST_CASE("tensor files hold the elements in logical order") {
  Recording recording(R"({"task": "tensor"})", R"({"slice": [{"dim": 0, "begin": 1}]})");
  recording.start();
  std::vector<float> values(300'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::array<std::int64_t, 2> shape = {3, 100'000};
  const std::array<std::int64_t, 2> strides = {1, 3};
  const msprobe_event event = recording.enter("Tensor.add");
  for (int i = 0; i < 2; ++i)
    recording.section(event, MSPROBE_INPUT)
        .add(Tensor{.data = values.data(), .shape = shape, .strides = strides});
  std::fill(values.begin(), values.end(), 0.0F);  // the copy was made before
  recording.leave(event);
  recording.step();
  const Json tensor = recording.data()["Tensor.add.0.forward"]["input_args"][0];
  CHECK(tensor["shape"] == Json({2, 100'000}));
  const formats::StoredTensor read =
      formats::open_tensor(open_file(recording.path("dump_tensor_data/Tensor.add.0.forward.input.0.pt")));
  REQUIRE(read.shape == std::vector<std::int64_t>{2, 100'000});
  std::vector<float> elements(200'000);
  formats::ElementReader(read).read(std::as_writable_bytes(std::span(elements)));
  CHECK(elements[0] == 1);
  CHECK(elements[1] == 4);
  CHECK(elements[100'000] == 2);
  CHECK(tensor["Max"] == 299'999.0);
}

namespace {

struct Owned {
  int alive = 1;
  int released = 0;
};
int is_alive(void* owner) {
  return static_cast<Owned*>(owner)->alive;
}
void let_go(void* owner) {
  ++static_cast<Owned*>(owner)->released;
}

}  // namespace

TEST_CASE("results are used again while the elements are the same, and no longer") {
  Recording recording("{}", R"({"summary_mode": "md5"})");
  recording.start();
  std::vector<float> values(100'000, 1.0F);
  const std::array<std::int64_t, 1> shape = {100'000};
  std::vector<Owned> owners(6);
  const auto record = [&](Owned& owner, std::uint64_t version) {
    const msprobe_event event = recording.enter("Tensor.add");
    msprobe_tensor tensor = Tensor{.data = values.data(), .shape = shape}.descriptor();
    tensor.version = version;
    tensor.owner = &owner;
    tensor.alive = is_alive;
    tensor.release = let_go;
    {
      const Section input = recording.section(event, MSPROBE_INPUT);
      CHECK(msprobe_add_tensor(input.get(), nullptr, &tensor, nullptr) == MSPROBE_OK);
    }
    recording.leave(event);
  };
  record(owners[0], 1);
  CHECK(owners[0].released == 0);
  values[777] = 5;  // where no sample is taken: the version says nothing, so the result is the old one
  record(owners[1], 1);
  CHECK(owners[1].released == 1);
  record(owners[2], 2);  // another version
  owners[2].alive = 0;
  values[777] = 7;
  record(owners[3], 2);
  CHECK(owners[2].released == 1);
  std::fill(values.begin(), values.end(), 9.0F);  // noticed without a version
  record(owners[4], 2);
  recording.step();
  for (int i = 0; i < 5; ++i) CHECK(owners[static_cast<std::size_t>(i)].released == 1);
  std::vector<double> most;
  const Json data = recording.data();
  for (const auto& [name, entry] : data.items()) most.push_back(entry["input_args"][0]["Max"]);
  CHECK(most == std::vector<double>{1, 1, 5, 7, 9});
  // A tensor that is not recorded is released as well.
  msprobe_tensor bad = {};
  bad.struct_size = sizeof bad;
  bad.owner = &owners[5];
  bad.release = let_go;
  CHECK(msprobe_add_tensor(nullptr, nullptr, &bad, nullptr) == MSPROBE_INVALID);
  CHECK(owners[5].released == 1);
}

TEST_CASE("errors are logged once for each kind and step") {
  Recording recording;
  CHECK(msprobe_log_error(recording.session, "kind", "before") == MSPROBE_SKIP);
  recording.start();
  CHECK(msprobe_log_error(recording.session, "kind", "first\nTraceback") == MSPROBE_OK);
  CHECK(msprobe_log_error(recording.session, "kind", "again") == MSPROBE_OK);
  CHECK(msprobe_log_error(recording.session, "other", "second") == MSPROBE_OK);
  recording.step();
  const std::string log = read_file(recording.path("dump_error_info.log"));
  CHECK(log.find("] [ERROR] first\nTraceback\n\n[") != std::string::npos);
  CHECK(log.find("again") == std::string::npos);
  CHECK(log.find("second") != std::string::npos);
}

TEST_CASE("settings that change while the program runs") {
  const ScratchDirectory folder;
  const auto put = [&](bool on, const char* level) {
    const Json config = {{"dump_path", folder / "out"}, {"level", level}, {"dump_enable", on}};
    put_file(folder / "config.json", config.dump());
  };
  put(true, "L1");
  msprobe_session* session = nullptr;
  REQUIRE(msprobe_session_open((folder / "config.json").c_str(), nullptr, nullptr, &session) == MSPROBE_OK);
  msprobe_set_rank(session, 0);
  const auto reload = [&](int milliseconds = 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    int changed = 0;
    const msprobe_status status = msprobe_reload(session, &changed);
    return std::pair<int, int>(status, changed);
  };
  const auto info = [&] {
    msprobe_info known = {};
    known.struct_size = sizeof known;
    CHECK(msprobe_session_info(session, &known) == MSPROBE_OK);
    return known;
  };
  CHECK(info().reloads == 1);
  CHECK(reload() == std::pair<int, int>(MSPROBE_OK, 0));
  msprobe_start(session, nullptr, nullptr);
  put(true, "mix");
  CHECK(reload() == std::pair<int, int>(MSPROBE_OK, 0));  // not in the middle of a step
  CHECK(msprobe_step(session) == MSPROBE_OK);
  CHECK(reload() == std::pair<int, int>(MSPROBE_OK, 1));
  CHECK(info().records_modules == 1);
  put_file(folder / "config.json", "{");
  msprobe_start(session, nullptr, nullptr);
  CHECK(*msprobe_session_running(session) == 1);
  CHECK(reload() == std::pair<int, int>(MSPROBE_INVALID, 1));
  CHECK(reload() == std::pair<int, int>(MSPROBE_OK, 0));          // not read again at once
  CHECK(reload(520) == std::pair<int, int>(MSPROBE_INVALID, 0));  // told once
  CHECK(*msprobe_session_running(session) == 0);
  CHECK(info().enabled == 0);
  put(true, "mix");
  CHECK(reload() == std::pair<int, int>(MSPROBE_OK, 1));
  CHECK(info().enabled == 1);
  put(false, "mix");
  CHECK(reload() == std::pair<int, int>(MSPROBE_OK, 1));
  CHECK(info().enabled == 0);
  CHECK(reload() == std::pair<int, int>(MSPROBE_OK, 0));
  put(true, "mix");
  CHECK(reload() == std::pair<int, int>(MSPROBE_OK, 1));
  CHECK(info().enabled == 1);
  CHECK(msprobe_session_close(session) == MSPROBE_OK);
}

TEST_CASE("a program that goes to another folder finds its dump where it began") {
  const ScratchDirectory folder;
  const ScratchDirectory other;
  const int status = in_child([&] {
    if (::chdir(folder.path().c_str()) != 0) ::_exit(1);
    Recorder recorder(R"({"dump_path": "here", "task": "tensor", "level": "mix", "risk_level": "ALL"})");
    recorder.set_rank(0);
    if (!recorder.start() || ::chdir(other.path().c_str()) != 0) ::_exit(2);
    record_calls(recorder.get(), 1);
    if (!recorder.step() || !recorder.start() || !recorder.step()) ::_exit(3);
  });
  CHECK(status == 0);
  CHECK(other.names().empty());
  const Json dump = Json::parse(read_file(folder / "here/step0/rank0/dump.json"));
  CHECK(dump["dump_data_dir"] == "here/step0/rank0/dump_tensor_data");
  CHECK(dump["data"].size() == 4);
  CHECK(std::filesystem::exists(folder / "here/step1/rank0/dump.json"));
}

}  // namespace msprobe::collector_files_test
