// SPDX-License-Identifier: Apache-2.0
// `msprobe compare` without its command line: options in groups, each of which goes only to the code that
// needs it, and a plan of tasks that give their rows to every output.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "compare/dump_tree/dump_tree.hpp"
#include "compare/sinks/story.hpp"
#include "compare/sinks/summary.hpp"
#include "compare/static_graph/graph_tree.hpp"
#include "report/writers.hpp"

namespace msprobe::compare {

struct Inputs {
  std::string target;
  std::string golden;
  bool atb = false;                     // they are of ATB; otherwise the files tell the kind
  bool local = false;                   // the dumps are on the local disks of several machines
  std::optional<GraphSelection> graph;  // a static-graph dump is asked for, and these parts of it
};

struct Outputs {
  std::string directory = "./output";
  std::string file;                      // a fixed name instead; "-" is standard output
  Existing existing = Existing::refuse;  // for file names from the command line
  std::vector<report::Format> formats;   // of tables
  bool formats_chosen = false;           // not the default
  std::vector<std::string> texts;        // about all tasks, by name (sinks/texts.hpp)
  std::string suggest_mapping;           // where to write a proposal for rows without partner; empty: nowhere
  std::string map_parameters;            // where to write which parameter is which; empty: nowhere
  StoryOptions story;                    // printed instead of writing results

  /// The number of results that are written for each comparison, or for all together.
  std::size_t results() const { return formats.size() + texts.size(); }
};

struct CompareOptions {
  Inputs inputs;
  RankOptions rank;
  bool python_rules = false;  // as typed
  measuring::PythonRules python;
  std::string rules_file;
  std::string factors_file;  // matrices by which tensors are multiplied
  SummaryOptions summary;
  Outputs outputs;
};

/// Runs the whole comparison. A task that fails is reported in its summary and does not stop the others.
CompareReport compare(const CompareOptions& options, Progress* progress);

}  // namespace msprobe::compare
