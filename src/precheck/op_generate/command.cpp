// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "precheck/op_generate/case.hpp"
#include "precheck/op_generate/config.hpp"
#include "support/command.hpp"
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
    return "Write one operation of a dump as a self-contained test case";
  }

  void declare(OptionList& options) override {
    Option dump = options.add("-api_info,--api_info_file=FILE", dump_json_, "dump.json of one rank");
    Option api = options.add("--api=NAME", api_, "The operation: Functional.softmax.0")
                     .details("The name includes the number of the call.");
    options.add("-o,--api_output_path=DIR", output_, "Where to create the folder of the case")
        .details("It is created where missing.");
    const Option config = options
                              .add("-i,--config_input=FILE", config_,
                                   "Configuration of releases 8.x; replaces all options but -o")
                              .details(
                                  "Its keys are `dump_json_path`, `api_name`, `propagation`, `data_mode`, "
                                  "`random_seed`, `iter_times` and `extract_api_path`, where the entries of "
                                  "the operation are written, or, without `dump_json_path`, read.")
                              .excludes({dump, api}, "the configuration names the dump and the operation");
    dump.required({config});
    api.required({config});
    options
        .add("--propagation", propagation_,
             "forward, backward (includes forward), or recorded: with backward if there is one")
        .details("`backward` is refused where the dump has none.")
        .one_of({"recorded", "forward", "backward"});
    options.add("--data", data_,
                {{"auto", CaseData::automatic}, {"real", CaseData::real}, {"random", CaseData::random}},
                "real: dumped tensors; random: data from recorded ranges; auto: what the dump has");
    seed_option_ = options.add("--seed=N", seed_, "Seed of random data; default: one per operation")
                       .details("The default comes from the name of the operation.")
                       .in_range(0, UINT32_MAX);
    options.add("--iterations=N", iterations_, "Number of calls by the script, 1 to 1000")
        .details("Results that differ between calls are a warning.")
        .in_range(1, kMostIterations);
  }

  Outcome run(const Context& context) override {
    CaseRequest request = config_.empty() ? typed_request() : read_case_config(config_);
    request.framework = context.framework;
    check_output_folder(output_);
    const WrittenCase written = write_case(request, output_);
    log_info(fmt::format("{}: {}, {}{}\n  written: {}\n  to run it: python3 {}/run.py", request.api,
                         written.backward ? "forward and backward" : "forward",
                         written.tensors == 1 ? "1 tensor" : human_count(written.tensors) + " tensors",
                         written.synthetic ? ", made from recorded ranges" : "", display(written.folder),
                         display(written.folder)));
    return Outcome::clean;
  }

 private:
  CaseRequest typed_request() const {
    CaseRequest request;
    request.dump_json = dump_json_;
    request.api = api_;
    request.backward = propagation_ != "forward";
    request.needs_backward = propagation_ == "backward";
    request.data = data_;
    if (seed_option_.given()) request.seed = static_cast<std::uint32_t>(seed_);
    request.iterations = static_cast<unsigned>(iterations_);
    return request;
  }

  std::string dump_json_;
  std::string api_;
  std::string output_ = "./";
  std::string config_;
  std::string propagation_ = "recorded";
  CaseData data_ = CaseData::automatic;
  Option seed_option_;
  std::size_t seed_ = 0;
  std::size_t iterations_ = 1;
};

}  // namespace

std::unique_ptr<Command> make_op_generate() {
  return std::make_unique<OpGenerateCommand>();
}

}  // namespace msprobe::precheck
