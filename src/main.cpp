// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"
#include "support/interrupt.hpp"
#include "support/out_of_memory.hpp"

namespace {

/// Static objects of libraries ask for memory as well: this comes before them.
[[gnu::constructor(101)]] void prepare() {
  msprobe::prepare_for_no_memory(msprobe::kFailure);
}

}  // namespace

int main(int argc, char** argv) {
  msprobe::catch_signals();
  return msprobe::report_failures([&] {
    return msprobe::run_program({argv + (argc > 0 ? 1 : 0), argv + argc});
  });
}
