// SPDX-License-Identifier: Apache-2.0
#include "parse/shell.hpp"

#include "support/error.hpp"

namespace msprobe::parse {

Outcome run_shell(const Context&) {
  throw UsageError("-d/--dump_path is required");
}

}  // namespace msprobe::parse
