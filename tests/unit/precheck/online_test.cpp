// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dump/member_stream.hpp"
#include "precheck/acc_check/online_findings.hpp"
#include "precheck/acc_check/online_listen.hpp"
#include "precheck/acc_check/online_messages.hpp"
#include "precheck/acc_check/online_stream.hpp"
#include "precheck/acc_check/online_table.hpp"
#include "precheck/acc_check/online_tensors.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/log.hpp"
#include "support/output_file.hpp"
#include "unit/support/complaint.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::precheck::online_test {
namespace {

std::string refusal(const std::string& message) {
  return test::message_of([&] { read_online_message(message); }, "");
}

OperationReport report_of(const std::string& name, PrecheckVerdict forward,
                          PrecheckVerdict backward = PrecheckVerdict::none) {
  OperationReport report;
  report.name = name;
  report.forward_verdict = forward;
  report.backward_verdict = backward;
  report.reason = "off";
  return report;
}

}  // namespace

TEST_CASE("online: messages") {
  const OnlineMessage call = read_online_message(
      R"({"call": 7, "type": "Torch", "name": "sin", "number": 2, "step": 3, "leaf": "rank1", "entry": {"input_args": []},
          "tensors": {}, "blocks": [[4096, 12]], "follows": true, "place": "a", "where": "b", "frames": ["c"]})");
  CHECK(call.kind == OnlineMessage::MessageKind::call);
  CHECK(call.id == 7);
  CHECK(call.api.text() == "Torch.sin.2");
  CHECK(call.entry == R"({"input_args": []})");
  CHECK(call.follows);
  CHECK(call.place == "a");
  CHECK(call.frames == std::vector<std::string>{"c"});
  CHECK(read_online_message(R"({"step_ends": 4})").kind == OnlineMessage::MessageKind::step);

  CHECK(refusal("{") != "");
  CHECK(refusal("[]") == "the training: sent a message of an unknown kind");
  CHECK(refusal(R"({"call": -1})") == "the training: sent a message whose call is not a number");
  CHECK(refusal(R"({"unused": 0, "blocks": [[1]]})") ==
        "the training: sent a message with a block that is not a pair of numbers");
  CHECK(refusal(R"({"backward": 1})") == "the training: sent a message without an entry");
  for (const char* leaf : {"", "..", "a/b", "rank", "rank-1", "rank1/..", "proc1x", "tile0"}) {
    CHECK(refusal(R"({"skipped": 1, "type": "Torch", "name": "sin", "number": 2, "step": 3, "leaf": ")" +
                  std::string(leaf) + "\"}") == "the training: sent a message of a call without a rank");
  }

  OnlineStart start;
  CHECK_THROWS_WITH_AS(read_online_start("{}", start),
                       "the training: sent a message without the member begin", FormatError);
  CHECK_THROWS_WITH_AS(
      read_online_start(
          R"({"begin": {"folder": "f", "cases": "c", "python": "p", "device": "cpu", "timeout": 1, "tensors": 3,
              "replies": 4, "white_list": ["sine"]}})",
          start),
      "acc_check: white_list: 'sine' is not an operation that is recorded; did you mean 'sin'?", FormatError);
  CHECK(start.replies == 4);
}

TEST_CASE("online: the table of compare") {
  const auto tensor = [](tensor::DType dtype, const auto& elements) {
    TensorOutput made;
    made.dtype = dtype;
    made.shape = {elements.size()};
    made.bytes = std::as_bytes(std::span(elements));
    return CallOutput{made};
  };
  const auto pair_of = [](CallOutput first, CallOutput second) {
    CallOutput::List list;
    list.elements.push_back(std::move(first));
    list.elements.push_back(std::move(second));
    return CallOutput{std::move(list)};
  };
  const std::array<float, 2> right = {3, 4};
  const std::array<float, 2> wrong = {3, -4};
  const std::array<double, 2> wide = {3, 4};
  const std::array<std::int64_t, 1> places = {7};
  const CallOutput training = tensor(tensor::DType::float32, right);
  const CallOutput indices = tensor(tensor::DType::int64, places);
  const std::string name = "Torch.a.0";
  const std::vector<std::size_t> as_they_stand;
  const std::vector<std::size_t> behind_null = {1, 2};
  OnlineTable table;
  const auto rows = [&](std::uint64_t step, const std::vector<std::size_t>& of, const CallOutput& ours,
                        const CallOutput& theirs) {
    table.take({name, step, of.empty() ? CallDirection::forward : CallDirection::backward, of}, ours, theirs);
    return table.take_lines();
  };
  const std::string row = "Torch.a.0.forward.output.0,Torch.a.0.forward.output.0,torch.float32,";
  // A reference in a wider type is rounded.
  CHECK(rows(3, as_they_stand, training, tensor(tensor::DType::float64, wide)) ==
        row +
            "torch.float32,[2],[2],N/A,N/"
            "A,1.0,0.0,0.0,0.0,1.0,1.0,4.0,3.0,3.5,5.0,4.0,3.0,3.5,5.0,True,pass,[],"
            "\"['-1', '-1']\",3\n");
  CHECK(table.header().starts_with("NPU Name,Bench Name,"));
  CHECK(table.header().ends_with(",Err_message,Data_name,Step\n"));
  // There is a row of the same verdict already.
  CHECK(rows(4, as_they_stand, training, training).empty());
  CHECK(rows(5, as_they_stand, training, tensor(tensor::DType::float32, wrong))
            .starts_with(row + "torch.float32,[2],[2],N/A,N/A,-0.28,"));
  CHECK_FALSE(rows(6, as_they_stand, training, training).empty());
  // Gradients are called as they were recorded.
  const std::string two = rows(7, behind_null, pair_of(training, indices), pair_of(training, indices));
  CHECK(two.starts_with("Torch.a.0.backward.output.1,Torch.a.0.backward.output.1,"));
  CHECK(two.find("\nTorch.a.0.backward.output.2,Torch.a.0.backward.output.2,torch.int64,torch.int64,[1],") !=
        std::string::npos);
}

TEST_CASE("online: what a receiver has written") {
  const test::ScratchDirectory scratch;
  const std::string folder = scratch.path() + "/1";
  create_directories(folder);
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder + '/' + name, std::ios::app) << text;
  };
  const std::string skipped =
      R"(, "type": "Torch", "name": "sin", "number": 2, "step": 3, "leaf": "rank0", "reason": "none"})";
  OnlineSettings settings;
  settings.results = scratch.path() + "/results";
  settings.python = "none";
  settings.device = "cpu";
  const Standards standards = Standards::built_in();
  Runner runner(online_runner(settings.python, settings.device));
  OnlineDesk desk{settings, standards, runner, false};
  OnlineStream stream(folder, "peer", OnlineWriter::receiver, desk);
  write("messages.0",
        R"({"begin": {"folder": "/", "cases": "/", "python": "/", "device": "x", "timeout": 0}})"
        "\n");
  CHECK(stream.advance());
  CHECK_FALSE(stream.advance());
  write("messages.0", R"({"skipped": 1)" + skipped);  // its end comes later
  CHECK_FALSE(stream.advance());
  write("messages.0", "\n");
  write("messages.1", "");
  CHECK(stream.advance());
  CHECK_FALSE(path_exists(folder + "/messages.0"));
  write("messages.1", R"({"skipped": 2)" + skipped + "\n{\"end\": 0}\n");
  mute_log(true);
  CHECK(stream.advance());
  mute_log(false);
  CHECK(stream.ended());
  OnlineCounts counts;
  stream.count(counts);
  CHECK(counts.skips == 1);
  CHECK_FALSE(path_exists(folder));
  CHECK(names_in(settings.results, WhichNames::folders) == std::vector<std::string>{"rank0"});
}

TEST_CASE("online: addresses") {
  const auto read = [](const std::string& text) {
    const ListenAddress address = read_listen_address(text);
    return address.host + ' ' + std::to_string(address.port);
  };
  CHECK(read("judge:9000") == "judge 9000");
  CHECK(read("[::1]:1") == "::1 1");
  CHECK(read(":0") == " 0");
  for (const char* text : {"", "judge", "judge:", "judge:65536", "judge:-1", "::1:1", "judge:http"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(read_listen_address(text), UsageError);
  }
}

TEST_CASE("online: tensors") {
  const test::ScratchDirectory scratch;
  const int descriptor = ::open((scratch.path() + "/file").c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(::write(descriptor, "0123456789abcdef", 16) == 16);
  const auto file = std::make_shared<const ReceivedFile>(descriptor);
  const auto added = [&](const std::string& table) {
    ReceivedTensors tensors;
    const dump::Entry entry = dump::read_json(table, "a table");
    tensors.add(entry, 0, file);
    return tensors;
  };
  const ReceivedTensors tensors = added(R"({"a.pt": ["torch.float32", [2], 8]})");
  const formats::StoredTensor stored = tensors.open("a.pt");
  CHECK(stored.shape == std::vector<std::int64_t>{2});
  CHECK(read_text(*stored.storage, 0, 8) == "89abcdef");
  CHECK_THROWS_AS(static_cast<void>(tensors.open("b.pt")), FormatError);
  for (const char* table :
       {R"([])", R"({"a.pt": ["torch.float32", [2]]})", R"({"a.pt": ["torch.float5", [2], 0]})",
        R"({"a.pt": ["torch.float32", [3], 8]})", R"({"a.pt": ["torch.float32", [-1], 0]})",
        R"({"a.pt": ["torch.float32", [4611686018427387904, 8], 0]})",
        R"({"a.pt": ["torch.float32", [1], -4]})", R"({"../a.pt": ["torch.float32", [1], 0]})",
        R"({".a": ["torch.float32", [1], 0]})"}) {
    CAPTURE(table);
    CHECK_THROWS_AS(added(table), FormatError);
  }
  file->release(0, 16);
}

TEST_CASE("online: findings") {
  OnlineFindings findings;
  findings.place("Torch.sin.0", "layers.1 (Block)", "", {});
  CHECK(findings.take(report_of("Torch.sin.0", PrecheckVerdict::pass), 0, 1).row);
  CHECK_FALSE(findings.take(report_of("Torch.sin.0", PrecheckVerdict::pass), 1, 3).row);
  const OnlineFindings::NewFindings taken =
      findings.take(report_of("Torch.sin.0", PrecheckVerdict::error), 4, 5);
  CHECK(taken.row);
  CHECK(taken.new_error);
  CHECK_FALSE(findings.take(report_of("Torch.sin.0", PrecheckVerdict::error), 5, 7).new_error);
  CHECK(
      findings.take(report_of("Torch.cos.0", PrecheckVerdict::pass, PrecheckVerdict::error), 4, 6).new_error);
  CHECK(findings.take(report_of("Torch.tan.0", PrecheckVerdict::error), 2, 4).new_error);
  findings.take(report_of("Torch.rand.0", PrecheckVerdict::skip), 0, 2);
  CHECK(findings.calls() == 6);
  CHECK(findings.of(PrecheckVerdict::error) == 3);
  CHECK(findings.of(PrecheckVerdict::skip) == 1);
  CHECK(findings.error_text("Torch.cos.0") == "step 4: the backward of Torch.cos.0 is wrong: off");
  CHECK(findings.lines(false) ==
        "\n  error    Torch.tan.0, since step 2, where it was judged first (1 of 1 call)\n           off"
        "\n  error    Torch.sin.0 in layers.1 (Block), since step 4, right until step 1 (2 of 4 calls)\n     "
        "      off"
        "\n  error    Torch.cos.0, backward, since step 4, where it was judged first (1 of 1 call)\n         "
        "  off");
}

}  // namespace msprobe::precheck::online_test
