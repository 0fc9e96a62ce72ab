// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "code_mapping/mapping.hpp"
#include "support/command.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_folder.hpp"
#include "support/text.hpp"

namespace msprobe::code_mapping {
namespace {

class CodeMappingCommand final : public Command {
 public:
  std::string_view name() const override { return "code_mapping"; }
  std::string_view summary() const override {
    return "Find the lines of code that made the tensors of a MindSpore static graph";
  }

  void declare(OptionList& options) override {
    options.add("--ir=FILE", ir_, "Graph file of MindSpore (.ir)").required();
    options.add("--dump_data=PATH", dump_, "Dump of the graph: a folder, a .npy file or a statistic.csv")
        .required();
    options.add("-o,--output=DIR", output_, "Folder for the table of .npy files")
        .details("It is created where missing.");
  }

  Outcome run(const Context&) override {
    check_output_folder(output_);
    const Result result = map_code(ir_, dump_, output_);
    std::string text = fmt::format("tensors: {}, with lines of code: {}", human_count(result.tensors),
                                   human_count(result.mapped));
    for (const std::string& file : result.files) text += "\n  written: " + display(file);
    log_info(text);
    return Outcome::clean;
  }

 private:
  std::string ir_;
  std::string dump_;
  std::string output_ = ".";
};

}  // namespace

std::unique_ptr<Command> make_command() {
  return std::make_unique<CodeMappingCommand>();
}

}  // namespace msprobe::code_mapping
