// SPDX-License-Identifier: Apache-2.0
#include "graph/vis/vis_output.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "support/result_name.hpp"

namespace msprobe::graph {
namespace {

void copy(OutputFile& from, std::uint64_t begin, std::uint64_t end, OutputFile& to) {
  constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 20;
  std::string bytes;
  for (; begin < end; begin += bytes.size()) {
    bytes.resize(std::min(kAtOnce, end - begin));
    from.read_at(begin, bytes);
    to.write(bytes);
  }
}

}  // namespace

VisOutput::VisOutput(const GraphOptions& options)
    : options_(options), time_(claim_time_stamp(options.output)) {}

void VisOutput::begin(const GraphPlace& place) {
  if (scratch_ && place.step != place_.step) finish_step();
  create_directories(options_.output);
  place_ = place;
  draft_ = {path_of(place), 0, 0, {}};
  if (!scratch_) scratch_.emplace(draft_.path);
  draft_.begin = scratch_->size();
  writer_.emplace(*scratch_, options_.compares(), options_.whole_stacks);
}

std::size_t VisOutput::add(std::string_view, const NodeSource& source, const GraphObserver& observer) {
  return writer_->add(source, observer);
}

void VisOutput::end(GraphFrame&& frame) {
  writer_->end({frame.task, frame.micro_steps, options_.overflow_check});
  for (auto& [side, calls] : frame.calls) edges_.add(side, place_.step, place_.rank, std::move(calls));
  draft_.end = scratch_->size();
  if (files_++ == 0) first_ = draft_.path;
  drafts_.emplace(place_.rank, std::move(draft_));
}

std::string VisOutput::finish(const GraphExtent&) {
  finish_step();
  return files_ == 1 ? first_ : fmt::format("{} and {} more", first_, files_ - 1);
}

std::string VisOutput::path_of(const GraphPlace& place) const {
  std::string label = place.label;
  std::replace(label.begin(), label.end(), '/', '_');
  return fmt::format("{}/{}_{}{}{}.vis", options_.output, options_.compares() ? "compare" : "build", label,
                     label.empty() ? "" : "_", time_);
}

void VisOutput::finish_step() {
  if (drafts_.size() > 1) {
    edges_.tell(
        [&](std::int64_t rank, std::int64_t gap, const std::string& json) {
          drafts_.at(rank).gaps.emplace_back(gap, communication_member(json, options_.compares()));
        },
        communication_text(options_.compares()));
  }
  const Draft* const only = drafts_.size() == 1 ? &drafts_.begin()->second : nullptr;
  if (only != nullptr && only->begin == 0 && only->end == scratch_->size()) {
    scratch_->commit();
  } else {
    for (auto& [rank, draft] : drafts_) write(draft);
  }
  drafts_.clear();
  scratch_.reset();
  edges_ = Edges();
}

/// Copies a draft to its final place and inserts the texts for the gaps.
void VisOutput::write(Draft& draft) {
  std::ranges::sort(draft.gaps);
  OutputFile file(draft.path);
  std::uint64_t at = draft.begin;
  for (const auto& [gap, member] : draft.gaps) {
    copy(*scratch_, at, gap, file);
    file.write(member);
    at = gap;
  }
  copy(*scratch_, at, draft.end, file);
  file.commit();
}

}  // namespace msprobe::graph
