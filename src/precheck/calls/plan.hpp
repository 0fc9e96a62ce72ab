// SPDX-License-Identifier: Apache-2.0
// The calls of a dump.json, in their order, and why some of them are not made again.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dump/entry.hpp"
#include "precheck/judgement/output.hpp"
#include "support/byte_source.hpp"
#include "support/command.hpp"

namespace msprobe::precheck {

struct PlannedCall {
  ApiName api;
  std::string name;  // "Torch.matmul.0"
  dump::EntryPlace forward;
  std::optional<dump::EntryPlace> backward;
  std::string skip;  // why it is not called; empty: it is
};

struct CallLists {
  std::set<std::string, std::less<>> white;  // empty: all
  std::set<std::string, std::less<>> black;
};

/// The reason why calls of an operation are not made; empty: they are made.
std::string why_not_called(const CallLists& lists, const ApiName& api,
                           Framework framework = Framework::pytorch);

struct CallPlan {
  std::vector<PlannedCall> calls;
  bool has_data = false;
  Framework framework = Framework::pytorch;
  std::string tensor_directory;  // empty: tensors were not dumped
  std::uint64_t duplicates = 0;  // left out by `filter`
};

/// The tensors are in a folder next to the file. `filter`: keeps one of several calls of an operation that
/// differ only in their values. `wanted`: the framework that the dump must have; a dump that names none
/// counts as one of it. FormatError for a broken file, and for a dump of another framework.
CallPlan plan_calls(const ByteSource& json, const CallLists& lists, bool filter,
                    Framework wanted = Framework::unspecified);

}  // namespace msprobe::precheck
