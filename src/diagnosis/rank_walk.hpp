// SPDX-License-Identifier: Apache-2.0
// Walks over the entries of a rank in the order of execution, and asks the rules at each of them.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "diagnosis/buffer_rule.hpp"
#include "diagnosis/call_rule.hpp"
#include "diagnosis/enclosing_code.hpp"
#include "diagnosis/gradient_paths.hpp"
#include "diagnosis/gradient_rule.hpp"
#include "diagnosis/input_rule.hpp"
#include "diagnosis/one_sided_runs.hpp"
#include "diagnosis/output_rule.hpp"
#include "diagnosis/parameter_rule.hpp"
#include "diagnosis/rewrites.hpp"
#include "diagnosis/running_statistics.hpp"
#include "diagnosis/step_rule.hpp"
#include "diagnosis/suspects.hpp"
#include "diagnosis/training_rule.hpp"
#include "diagnosis/unexplained_rule.hpp"
#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

class RankWalk {
 public:
  /// `history` already has the precision of the statistics.
  RankWalk(const measuring::MeasuredRank& rank, const DiagnosisOptions& options,
           const std::vector<std::string>& framework_frames, SecondReading& reading, History& history,
           const MeasureEntry& measure_entry);
  RankDiagnosis run();

 private:
  void defer(std::uint32_t api, std::uint32_t place);
  void defer_gradients();
  void defer_first_passes();
  void judge(std::uint32_t api);
  void forward_pair(EntryPair& entry);
  void part_of_batch(EntryPair& entry);
  void make_good(EntryPair& entry);
  void finish_entry(EntryPair& entry);
  /// Whether certain evidence exists and nothing is open that could be earlier or change it.
  bool may_stop(const EntryPair& entry) const;
  void finish();

  Walk walk_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>>
      deferred_to_;  // by backward entry: the entries in Walk::deferred that are judged after it
  StepExplanations explanations_{walk_};
  Rewrites rewrites_{walk_};
  OneSidedRuns runs_{walk_};
  GradientPaths paths_{walk_};
  CallRule calls_{walk_, runs_, paths_};
  RunningStatistics running_{walk_};
  ParameterRule parameters_{walk_, running_};
  BufferRule buffers_{walk_, running_};
  InputRule inputs_{walk_, runs_, parameters_, buffers_};
  OutputRule outputs_{walk_};
  UnexplainedRule unexplained_{walk_};
  TrainingRule training_{walk_};
  EnclosingCode enclosing_{walk_};
  Suspects suspects_{walk_, runs_, paths_, running_};
  GradientRule gradients_{walk_, runs_, rewrites_, explanations_, paths_, calls_, outputs_};
};

}  // namespace msprobe::diagnosis
