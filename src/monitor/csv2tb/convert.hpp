// SPDX-License-Identifier: Apache-2.0
// `msprobe monitor csv2tb`: converts the csv files of a monitor to TensorBoard's event files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "monitor/input/tree.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::monitor {

struct EventOptions {
  std::string input;
  TimeRange times;
  std::vector<std::string> quantities;  // actv, grad_reduced, ...; empty: all
  std::string output;                   // empty: a new folder in the input, named by the time
};

struct EventReport {
  std::string output;
  std::uint64_t scalars = 0;
  std::uint64_t files = 0;
  std::vector<std::string> warnings;
  std::vector<std::string> problems;  // files that could not be read completely, or not written
};

/// Writes `{output}/rank{r}/{quantity}/events.out.tfevents.*` and replaces existing files. Each statistic is
/// one scalar, tagged `vp{stage}:{name}[:micro{m}]/{statistic}`, with ascending steps.
EventReport convert_to_events(const EventOptions& options, Progress* progress);

}  // namespace msprobe::monitor
