// SPDX-License-Identifier: Apache-2.0
#include "precheck/op_generate/command.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "precheck/op_generate/case.hpp"
#include "precheck/op_generate/config.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_folder.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

class OpGenerateCommand final : public Command {
 public:
  std::string_view name() const override { return "op_generate"; }
  std::string_view summary() const override {
    return "Write one operation of a dump as a case that runs by itself";
  }

  std::vector<std::pair<std::string, std::string>> aliases() const override {
    return {{"-api_info", "--api_info_file"}};
  }

  void declare(OptionList& options) override {
    options.add("--api_info_file", dump_json_, "dump.json of one rank").argument("FILE");
    options.add("--api", api_, "The operation: Functional.softmax.0").argument("NAME");
    options.add("-o,--api_output_path", output_, "Where the case's folder is made")
        .argument("DIR")
        .show_default();
    options
        .add("-i,--config_input", config_,
             "Configuration of releases 8.x, in place of all other options but -o")
        .argument("FILE");
    options
        .add("--propagation", propagation_,
             "forward, backward (with it), or recorded: backward if there is one")
        .one_of({"recorded", "forward", "backward"})
        .show_default();
    options
        .add("--data", data_, "real: dumped tensors; random: made of their ranges; auto: whatever there is")
        .one_of({"auto", "real", "random"})
        .show_default();
    seed_option_ = options.add("--seed", seed_, "Of random data; without it each operation has its own");
    seed_option_.argument("N");
    options.add("--iterations", iterations_, "How often the script calls the operation, 1 to 1000")
        .argument("N")
        .show_default();
  }

  Outcome run(const Context& context) override {
    if (context.framework == Framework::mindspore)
      throw UsageError("only operations of PyTorch are called again, not those of MindSpore");
    const CaseRequest request = config_.empty() ? typed_request() : config_request();
    const std::string output = output_.empty() ? "." : output_;
    check_output_folder(output);
    const WrittenCase written = write_case(request, output);
    log_info(fmt::format("{}: {}, {}{}\n  written: {}\n  to run it: python3 {}/run.py", request.api,
                         written.backward ? "forward and backward" : "forward",
                         counted(written.tensors, "tensor", "tensors"),
                         written.synthetic ? ", made of recorded ranges" : "", display(written.folder),
                         display(written.folder)));
    return Outcome::clean;
  }

 private:
  static std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", human_count(count), count == 1 ? one : many);
  }

  CaseRequest typed_request() const {
    if (dump_json_.empty()) throw UsageError("-api_info/--api_info_file is required, or -i/--config_input");
    if (api_.empty()) throw UsageError("--api is required: which operation is wanted?");
    if (iterations_ < 1 || iterations_ > kMostIterations)
      throw UsageError(fmt::format("--iterations must be a number from 1 to {}", kMostIterations));
    CaseRequest request;
    request.dump_json = dump_json_;
    request.api = api_;
    request.backward = propagation_ != "forward";
    request.needs_backward = propagation_ == "backward";
    request.data = data_ == "real"     ? CaseData::real
                   : data_ == "random" ? CaseData::random
                                       : CaseData::automatic;
    if (seed_option_.given()) {
      if (seed_ > UINT32_MAX) throw UsageError("--seed must be a number from 0 to 4294967295");
      request.seed = static_cast<std::uint32_t>(seed_);
    }
    request.iterations = static_cast<unsigned>(iterations_);
    return request;
  }

  CaseRequest config_request() const {
    if (!dump_json_.empty() || !api_.empty())
      throw UsageError("-i/--config_input names the dump and the operation: it excludes -api_info and --api");
    return read_case_config(config_);
  }

  std::string dump_json_;
  std::string api_;
  std::string output_ = "./";
  std::string config_;
  std::string propagation_ = "recorded";
  std::string data_ = "auto";
  Option seed_option_;
  std::size_t seed_ = 0;
  std::size_t iterations_ = 1;
};

}  // namespace

std::unique_ptr<Command> make_op_generate() {
  return std::make_unique<OpGenerateCommand>();
}

}  // namespace msprobe::precheck
