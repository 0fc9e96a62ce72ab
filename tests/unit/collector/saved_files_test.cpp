// SPDX-License-Identifier: Apache-2.0
// Tensor files: one for each tensor, under every name that it is recorded by; whole or not there.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "formats/tensor_file.hpp"
#include "unit/collector/recording.hpp"

namespace {

std::atomic<int> g_refusal{0};  // the error of link() below; 0: it succeeds
std::atomic<int> g_asked{0};

}  // namespace

/// Takes the place of the system's.
extern "C" int link(const char* from, const char* to) {
  ++g_asked;
  if (const int refusal = g_refusal; refusal != 0) {
    errno = refusal;
    return -1;
  }
  return ::linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

namespace msprobe::collector_saved_files_test {

using namespace msprobe;
using namespace msprobe::test;

namespace {

constexpr const char* kTensors = R"({"task": "tensor"})";

struct Refusal {
  explicit Refusal(int error) { g_refusal = error; }
  ~Refusal() { g_refusal = 0; }
};

/// A tensor as a front end has it: it says whose memory it is.
struct Owned {
  explicit Owned(std::size_t count, float value = 1)
      : values(count, value), shape{static_cast<std::int64_t>(count)} {}

  void add(Recording& recording, const char* name = "Functional.relu") {
    const msprobe_event event = recording.enter(name);
    {
      const Section input = recording.section(event, MSPROBE_INPUT);
      add(input.get());
    }
    recording.leave(event);
  }
  void add(msprobe_builder* builder) {
    msprobe_tensor tensor = Tensor{.data = values.data(), .shape = shape}.descriptor();
    tensor.version = version;
    tensor.owner = this;
    tensor.alive = [](void* owner) { return static_cast<Owned*>(owner)->alive; };
    tensor.release = [](void*) {};
    tensor.source = source;
    tensor.flags = flags;
    CHECK(msprobe_add_tensor(builder, nullptr, &tensor, nullptr) == MSPROBE_OK);
  }

  std::vector<float> values;
  std::array<std::int64_t, 1> shape;
  std::uint64_t version = 0;
  int alive = 1;
  const void* source = nullptr;
  std::uint32_t flags = 0;
};

std::string file_of(const Recording& recording, int call, int step = 0, const char* suffix = ".pt") {
  return recording.path(
      "dump_tensor_data/Functional.relu." + std::to_string(call) + ".forward.input.0" + suffix, step);
}

struct stat status_of(const std::string& path) {
  struct stat status {};
  REQUIRE_MESSAGE(::stat(path.c_str(), &status) == 0, path);
  return status;
}

bool one_file(const std::string& a, const std::string& b) {
  return status_of(a).st_ino == status_of(b).st_ino;
}

std::vector<float> elements_of(const std::string& path) {
  const formats::StoredTensor read = formats::open_tensor(open_file(path));
  std::vector<float> elements(static_cast<std::size_t>(read.shape.at(0)));
  formats::ElementReader(read).read(std::as_writable_bytes(std::span(elements)));
  return elements;
}

}  // namespace

TEST_CASE("a tensor that is saved again is one file under all names") {
  Recording recording(kTensors);
  recording.start();
  Owned small(3, 2);
  Owned large(1'000'000, 3);
  for (int i = 0; i < 3; ++i) {
    small.add(recording);
    large.add(recording);
  }
  recording.stop();
  for (const int call : {2, 4}) CHECK(one_file(file_of(recording, 0), file_of(recording, call)));
  for (const int call : {3, 5}) CHECK(one_file(file_of(recording, 1), file_of(recording, call)));
  CHECK(status_of(file_of(recording, 0)).st_nlink == 3);
  CHECK(status_of(file_of(recording, 1)).st_nlink == 3);
  CHECK(elements_of(file_of(recording, 4)) == small.values);
  CHECK(elements_of(file_of(recording, 5)) == large.values);
  // The file of a tensor from before stop() is known after it, and no longer in the next step.
  recording.start();
  small.add(recording);
  recording.step();
  recording.start();
  small.add(recording);
  recording.step();
  CHECK(status_of(file_of(recording, 0)).st_nlink == 4);
  CHECK(status_of(file_of(recording, 0, 1)).st_nlink == 1);
  const Json data = recording.data();
  for (int call = 0; call < 6; ++call) {
    const std::string name = "Functional.relu." + std::to_string(call) + ".forward";
    CHECK(data[name]["input_args"][0]["data_name"] == name + ".input.0.pt");
    CHECK(data[name]["input_args"][0]["Max"] == (call % 2 == 0 ? 2.0 : 3.0));
  }
}

TEST_CASE("other elements have a separate file") {
  Recording recording(kTensors);
  recording.start();
  Owned tensor(50'000);
  const auto record = [&](auto change) {
    change();
    tensor.add(recording);
    return tensor.values;
  };
  std::vector<std::vector<float>> seen;
  seen.push_back(record([] {}));
  seen.push_back(record([&] { tensor.version = 1; }));  // the same elements, perhaps changed and changed back
  seen.push_back(record([&] { tensor.values[777] = 5; }));    // changed without notice
  seen.push_back(record([&] { tensor.values[777] = 1; }));    // back again
  seen.push_back(record([&] { tensor.shape[0] = 49'999; }));  // another view
  seen.back().resize(49'999);
  const float other = 7;
  tensor.source = &other;  // a copy of what is somewhere else
  tensor.shape[0] = 50'000;
  seen.push_back(record([] {}));
  Owned copy(50'000);
  copy.source = &other;
  copy.version = tensor.version;
  copy.add(recording);
  seen.push_back(copy.values);
  recording.step();
  for (std::size_t call = 0; call < seen.size(); ++call)
    CHECK(elements_of(file_of(recording, static_cast<int>(call))) == seen[call]);
  for (int call = 1; call < 6; ++call)
    CHECK_FALSE(one_file(file_of(recording, call), file_of(recording, call - 1)));
  CHECK(one_file(file_of(recording, 5), file_of(recording, 6)));

  Recording gone(kTensors);
  gone.start();
  Owned first(8);
  first.add(gone);
  first.alive = 0;  // the memory now belongs to another tensor
  first.add(gone);
  gone.step();
  CHECK_FALSE(one_file(file_of(gone, 0), file_of(gone, 1)));
}

TEST_CASE("hard_links false: every name is a file") {
  const auto links_tensors = [](const Recording& recording) {
    msprobe_info info = {};
    info.struct_size = sizeof info;
    CHECK(msprobe_session_info(recording.session, &info) == MSPROBE_OK);
    return info.links_tensors != 0;
  };
  CHECK(links_tensors(Recording(kTensors)));
  CHECK_FALSE(links_tensors(Recording()));
  CHECK_FALSE(links_tensors(Recording(R"({"task": "overflow_check"})")));
  Recording recording(R"({"task": "tensor", "hard_links": false})");
  CHECK_FALSE(links_tensors(recording));
  recording.start();
  Owned tensor(8);
  for (int i = 0; i < 2; ++i) tensor.add(recording);
  recording.step();
  CHECK_FALSE(one_file(file_of(recording, 0), file_of(recording, 1)));
  CHECK(elements_of(file_of(recording, 1)) == tensor.values);
}

TEST_CASE("a file system without second names") {
  for (const int error : {EPERM, EXDEV, ENOTSUP, EACCES, ENOSYS}) {
    const Refusal refusal(error);
    Recording recording(kTensors);
    recording.start();
    Owned tensor(1000);
    tensor.add(recording);
    tensor.add(recording);
    recording.stop();
    const int asked = g_asked;
    recording.start();
    for (int i = 0; i < 5; ++i) tensor.add(recording);
    recording.step();
    CHECK(g_asked == asked);  // one answer is enough for a step
    for (int call = 0; call < 7; ++call) {
      CHECK(status_of(file_of(recording, call)).st_nlink == 1);
      CHECK(elements_of(file_of(recording, call)) == tensor.values);
    }
    CHECK_FALSE(std::filesystem::exists(recording.path("dump_error_info.log")));
  }
}

TEST_CASE("a file that can have no more names: the next one is the file that gets them") {
  Recording recording(kTensors);
  recording.start();
  Owned tensor(1000);
  tensor.add(recording);
  tensor.add(recording);
  recording.stop();
  recording.start();
  {
    const Refusal refusal(EMLINK);
    tensor.add(recording);
    recording.stop();
  }
  recording.start();
  tensor.add(recording);
  recording.step();
  CHECK(one_file(file_of(recording, 0), file_of(recording, 1)));
  CHECK_FALSE(one_file(file_of(recording, 0), file_of(recording, 2)));
  CHECK(one_file(file_of(recording, 2), file_of(recording, 3)));
  CHECK(elements_of(file_of(recording, 3)) == tensor.values);
}

TEST_CASE("a name that is given twice is what was recorded last, and takes nothing from others") {
  Recording recording(kTensors);
  recording.start();
  Owned first(1000, 1);
  Owned second(1000, 2);
  const msprobe_event event = recording.enter("Module.m.M");
  const auto fill = [&](Owned& tensor) {
    const Section input = recording.section(event, MSPROBE_INPUT);
    tensor.add(input.get());
  };
  fill(first);
  Owned bystander(1000, 3);
  bystander.add(recording, "Functional.gelu");
  first.add(recording, "Functional.silu");
  fill(second);  // its name is another tensor's now
  first.add(recording, "Functional.selu");
  recording.leave(event);
  second.add(recording, "Functional.celu");
  recording.step();
  const auto path = [&](const char* name) {
    return recording.path("dump_tensor_data/Functional." + std::string(name) + ".0.forward.input.0.pt");
  };
  const std::string module = recording.path("dump_tensor_data/Module.m.M.forward.0.input.0.pt");
  CHECK(elements_of(module) == second.values);
  for (const char* name : {"silu", "selu"}) CHECK(elements_of(path(name)) == first.values);
  CHECK(elements_of(path("gelu")) == bystander.values);
  CHECK(one_file(module, path("celu")));
}

TEST_CASE("a name that the names of a file went on from can become another tensor's") {
  Recording recording(kTensors);
  recording.start();
  Owned first(1000, 1);
  Owned second(1000, 2);
  first.add(recording, "Functional.silu");
  const msprobe_event event = recording.enter("Module.m.M");
  const auto fill = [&](Owned& tensor) {
    const Section input = recording.section(event, MSPROBE_INPUT);
    tensor.add(input.get());
  };
  {
    const Refusal refusal(EMLINK);
    fill(first);
    fill(second);  // when all that waits is done
  }
  first.add(recording, "Functional.selu");
  recording.leave(event);
  recording.step();
  const std::string folder = recording.path("dump_tensor_data/");
  CHECK(elements_of(folder + "Module.m.M.forward.0.input.0.pt") == second.values);
  for (const char* name : {"silu", "selu"})
    CHECK(elements_of(folder + "Functional." + name + ".0.forward.input.0.pt") == first.values);
}

TEST_CASE("recording into a folder that has a recording changes no file that is there") {
  const ScratchDirectory kept;
  Recording recording(kTensors);
  const auto run = [&](float value, int step) {
    recording.start();
    Owned tensor(1000, value);
    for (int i = 0; i < 3; ++i) tensor.add(recording);
    recording.step();
    return file_of(recording, 1, step);
  };
  const std::string before = run(1, 0);
  REQUIRE(::linkat(AT_FDCWD, before.c_str(), AT_FDCWD, (kept / "other.pt").c_str(), 0) == 0);
  REQUIRE(msprobe_set_init_step(recording.session, 0) == MSPROBE_OK);
  const std::string after = run(2, 0);
  CHECK(before == after);
  CHECK(elements_of(kept / "other.pt") == std::vector<float>(1000, 1));
  for (int call = 0; call < 3; ++call)
    CHECK(elements_of(file_of(recording, call)) == std::vector<float>(1000, 2));
  CHECK(status_of(after).st_nlink == 3);
  for (const auto& file : std::filesystem::directory_iterator(recording.path("dump_tensor_data")))
    CHECK(file.path().filename().string().front() != '.');
}

TEST_CASE("a rank that becomes known late: what was recorded before has moved") {
  const ScratchDirectory folder;
  const Json config = {
      {"task", "tensor"}, {"level", "mix"}, {"dump_path", folder.path()}, {"risk_level", "ALL"}};
  msprobe_session* session = nullptr;
  REQUIRE(msprobe_session_open(nullptr, config.dump().c_str(), nullptr, &session) == MSPROBE_OK);
  REQUIRE(msprobe_start(session, nullptr, nullptr) == MSPROBE_OK);
  Owned tensor(1000);
  const auto record = [&] {
    Call call(session, MSPROBE_KIND_API, Recording::number("Functional.relu"));
    const Section input = call.input();
    tensor.add(input.get());
  };
  record();
  record();
  REQUIRE(msprobe_set_rank(session, 3) == MSPROBE_OK);
  record();
  REQUIRE(msprobe_session_close(session) == MSPROBE_OK);
  for (int call = 0; call < 3; ++call) {
    const std::string name = "Functional.relu." + std::to_string(call) + ".forward.input.0.pt";
    CHECK(elements_of(folder / ("step0/rank3/dump_tensor_data/" + name)) == tensor.values);
  }
  CHECK_FALSE(std::filesystem::exists(folder / "step0/rank3/dump_error_info.log"));
}

TEST_CASE("other tasks and suffixes") {
  SUBCASE("tensor_list") {
    Recording recording(R"({"task": "statistics"})", R"({"tensor_list": ["relu"]})");
    recording.start();
    Owned tensor(100'000);
    tensor.add(recording, "Functional.gelu");
    tensor.add(recording);
    tensor.add(recording);
    tensor.add(recording, "Functional.gelu");
    recording.step();
    CHECK(one_file(file_of(recording, 0), file_of(recording, 1)));
    CHECK(status_of(file_of(recording, 0)).st_nlink == 2);
    recording.start();
    // Without a file, but of memory whose writes are not counted.
    tensor.flags = MSPROBE_TENSOR_UNCOUNTED;
    tensor.add(recording, "Functional.gelu");
    tensor.values[777] = 5;
    tensor.add(recording, "Functional.gelu");
    recording.step();
    const Json data = recording.data(1);
    CHECK(data["Functional.gelu.0.forward"]["input_args"][0]["Max"] == 1.0);
    CHECK(data["Functional.gelu.1.forward"]["input_args"][0]["Max"] == 5.0);
  }
  SUBCASE("checksums are those of the elements") {
    Recording recording(kTensors, R"({"summary_mode": "md5"})");
    recording.start();
    Owned tensor(100'000);
    tensor.add(recording);
    tensor.add(recording);
    tensor.values[777] = 5;
    tensor.add(recording);
    recording.step();
    const Json data = recording.data();
    const auto md5 = [&](int call) {
      return data["Functional.relu." + std::to_string(call) + ".forward"]["input_args"][0]["md5"];
    };
    CHECK(md5(0) == md5(1));
    CHECK(md5(1) != md5(2));
    CHECK(one_file(file_of(recording, 0), file_of(recording, 1)));
    CHECK(elements_of(file_of(recording, 2)) == tensor.values);
  }
  SUBCASE("npy") {
    const ScratchDirectory folder;
    const Json config = {
        {"task", "tensor"}, {"level", "mix"}, {"dump_path", folder.path()}, {"risk_level", "ALL"}};
    msprobe_overrides overrides = {};
    overrides.struct_size = sizeof overrides;
    overrides.file_suffix = "npy";
    msprobe_session* session = nullptr;
    REQUIRE(msprobe_session_open(nullptr, config.dump().c_str(), &overrides, &session) == MSPROBE_OK);
    REQUIRE(msprobe_set_rank(session, 0) == MSPROBE_OK);
    REQUIRE(msprobe_start(session, nullptr, nullptr) == MSPROBE_OK);
    Owned tensor(1000, 4);
    for (int i = 0; i < 2; ++i) {
      Call call(session, MSPROBE_KIND_API, Recording::number("Functional.relu"));
      const Section input = call.input();
      tensor.add(input.get());
    }
    REQUIRE(msprobe_session_close(session) == MSPROBE_OK);
    const std::string name = folder / "step0/rank0/dump_tensor_data/Functional.relu.";
    CHECK(one_file(name + "0.forward.input.0.npy", name + "1.forward.input.0.npy"));
    CHECK(elements_of(name + "1.forward.input.0.npy") == tensor.values);
  }
}

TEST_CASE("little or no memory for files that wait") {
  for (const char* settings :
       {R"({"task": "tensor", "write_buffer_mb": 0})", R"({"task": "tensor", "write_buffer_mb": 1})"}) {
    Recording recording(settings);
    recording.start();
    std::vector<Owned> tensors;
    for (int i = 0; i < 20; ++i) tensors.emplace_back(100'000, static_cast<float>(i));  // 0.4 MB each
    for (int round = 0; round < 2; ++round) {
      for (Owned& tensor : tensors) tensor.add(recording);
    }
    recording.step();
    for (int i = 0; i < 20; ++i) {
      CHECK(elements_of(file_of(recording, i)) == tensors[static_cast<std::size_t>(i)].values);
      CHECK(one_file(file_of(recording, i), file_of(recording, i + 20)));
    }
  }
}

TEST_CASE("tensors of several threads") {
  Recording recording(kTensors);
  recording.start();
  std::vector<Owned> tensors;
  for (int i = 0; i < 4; ++i) tensors.emplace_back(20'000, static_cast<float>(i));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const std::uint32_t name = Recording::number(("Functional.t" + std::to_string(thread)).c_str());
      for (int i = 0; i < 200; ++i) {
        Call call(recording.session, MSPROBE_KIND_API, name);
        const Section input = call.input();
        tensors[static_cast<std::size_t>(i + thread) % 4].add(input.get());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  recording.step();
  for (int thread = 0; thread < 4; ++thread) {
    for (int i = 0; i < 200; ++i) {
      const std::string name = "Functional.t" + std::to_string(thread) + '.' + std::to_string(i);
      CHECK(elements_of(recording.path("dump_tensor_data/" + name + ".forward.input.0.pt"))[19'999] ==
            static_cast<float>((i + thread) % 4));
    }
  }
}

TEST_CASE("a full disk: it is reported once, and the program goes on") {
  Recording outer;
  const std::string folder = outer.folder / "full";
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const Json config = {{"task", "tensor"}, {"level", "mix"}, {"dump_path", folder}, {"risk_level", "ALL"}};
    msprobe_session* session = nullptr;
    if (msprobe_session_open(nullptr, config.dump().c_str(), nullptr, &session) != MSPROBE_OK) ::_exit(1);
    msprobe_set_rank(session, 0);
    if (msprobe_start(session, nullptr, nullptr) != MSPROBE_OK) ::_exit(2);
    const rlimit limit = {20'000, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Owned large(10'000);
    Owned small(100);
    for (int i = 0; i < 6; ++i) {
      Call call(session, MSPROBE_KIND_API, Recording::number("Functional.relu"));
      const Section input = call.input();
      (i % 2 == 0 ? large : small).add(input.get());
    }
    ::_exit(msprobe_session_close(session) == MSPROBE_OK ? 0 : 3);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  const std::string rank = folder + "/step0/rank0/";
  const auto file = [&](int call) {
    return rank + "dump_tensor_data/Functional.relu." + std::to_string(call) + ".forward.input.0.pt";
  };
  for (const int call : {0, 2, 4}) CHECK_FALSE(std::filesystem::exists(file(call)));
  for (const int call : {1, 3, 5}) CHECK(elements_of(file(call)) == std::vector<float>(100, 1));
  const std::string log = read_file(rank + "dump_error_info.log");
  CHECK(log.find("[ERROR]") == log.rfind("[ERROR]"));
  CHECK(log.find("cannot be written: File too large") != std::string::npos);
}

TEST_CASE("a process that is killed while it writes tensors leaves whole files only") {
  std::size_t most = 0;
  for (int round = 0; round < 8; ++round) {
    const ScratchDirectory folder;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const Json config = {
          {"task", "tensor"}, {"level", "mix"}, {"dump_path", folder.path()}, {"risk_level", "ALL"}};
      msprobe_session* session = nullptr;
      if (msprobe_session_open(nullptr, config.dump().c_str(), nullptr, &session) != MSPROBE_OK) ::_exit(1);
      msprobe_set_rank(session, 0);
      msprobe_start(session, nullptr, nullptr);
      std::vector<Owned> tensors;
      for (const std::size_t count : {10U, 3000U, 200'000U}) tensors.emplace_back(count);
      for (std::size_t i = 0;; ++i) {
        Call call(session, MSPROBE_KIND_API, Recording::number("Functional.relu"));
        Owned& tensor = tensors[i % tensors.size()];
        if (i % 4 == 0) tensor.values[0] = static_cast<float>(i);
        const Section input = call.input();
        tensor.add(input.get());
      }
    }
    const std::string data = folder / "step0/rank0/dump_tensor_data";
    // At the very start, and ever later.
    const auto files_now = [&] {
      std::error_code error;
      std::ptrdiff_t number = 0;
      for (std::filesystem::directory_iterator file(data, error), end; !error && file != end;
           file.increment(error))
        ++number;
      return error ? -1 : number;
    };
    for (int wait = 0; wait < 20'000 && files_now() < 4 * round; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    std::size_t files = 0;
    for (const auto& file : std::filesystem::directory_iterator(data)) {
      if (file.path().filename().string().starts_with(".msprobe-"))
        continue;  // on file systems that need them
      CHECK(elements_of(file.path().string()).back() >= 0);
      ++files;
    }
    most = std::max(most, files);
  }
  CHECK(most > 10);
}

}  // namespace msprobe::collector_saved_files_test
