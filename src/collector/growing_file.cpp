// SPDX-License-Identifier: Apache-2.0
#include "collector/growing_file.hpp"

#include <utility>

#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"

namespace msprobe::collector {
namespace {

// The text that is kept while the file cannot be written, in the hope that writing succeeds later.
constexpr std::size_t kMaxPending = std::size_t{64} << 20;

}  // namespace

GrowingFile::GrowingFile(std::string path, std::string head, std::string tail, int level)
    : path_(std::move(path)), head_(std::move(head)), tail_(std::move(tail)), level_(level) {}

void GrowingFile::append_separator(std::string& out, bool first) const {
  if (!first) out += ',';
  append_json_line(out, level_, 1);
}

void GrowingFile::begin_member() {
  append_separator(pending_, !any_);
  any_ = true;
  ++waiting_;
}

void GrowingFile::begin_provisional(std::string& provisional) const {
  append_separator(provisional, !any_ && provisional.empty());
}

void GrowingFile::write(const std::string& provisional) {
  try {
    OutputFile file(path_);
    file.write(head_);
    if (kept_ > 0) file.append_from(path_, begin_, kept_);
    file.write(pending_);
    const std::uint64_t end = file.size();
    std::string rest = provisional;
    if (any_ || !provisional.empty()) append_json_line(rest, level_ - 1, 1);
    rest += '}';
    rest += tail_;
    file.write(rest);
    file.commit();
    begin_ = head_.size();
    kept_ = end - begin_;
    size_ = file.size();
    pending_.clear();
    members_ += std::exchange(waiting_, 0);
  } catch (const Error&) {
    if (pending_.size() > kMaxPending) {
      // The contents of the file begin without a comma, so later members must begin with one only if there
      // are such contents.
      pending_.clear();
      waiting_ = 0;
      any_ = kept_ > 0;
    }
    throw;
  }
}

}  // namespace msprobe::collector
