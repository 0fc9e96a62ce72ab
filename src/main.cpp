// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"
#include "support/interrupt.hpp"
#include "support/out_of_memory.hpp"

int main(int argc, char** argv) {
  msprobe::catch_signals();
  msprobe::prepare_for_no_memory(msprobe::kFailure);
  return msprobe::report_failures([&] {
    return msprobe::run_program({argv + (argc > 0 ? 1 : 0), argv + argc});
  });
}
