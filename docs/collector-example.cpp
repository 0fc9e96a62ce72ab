// SPDX-License-Identifier: Apache-2.0
// Records two steps of a program that scales and adds vectors.
//   c++ -std=c++20 collector-example.cpp $(pkg-config --cflags --libs msprobe_collector) -o example
//   ./example && msprobe inspect recorded
#include <array>
#include <msprobe/collector.hpp>
#include <span>
#include <vector>

using Vector = std::vector<float>;

static msprobe::Tensor tensor(const Vector& values, const std::array<std::int64_t, 1>& shape) {
  return {.data = values.data(), .dtype = MSPROBE_FLOAT32, .shape = shape};
}

int main() {
  msprobe::Recorder recorder(R"({"task": "statistics", "level": "mix", "dump_path": "recorded"})");
  const std::array<std::int64_t, 1> shape = {4};
  Vector x = {1, -2, 3.5, 4};
  const Vector weight = {1, 2, 3, 4};

  for (int step = 0; step < 2; ++step) {
    recorder.start();
    {
      msprobe::Call module = recorder.module("Module.scale.Scale");
      module.input().add(tensor(x, shape));
      {
        msprobe::Call api = recorder.api("Functional.mul");
        api.input().add(tensor(x, shape)).add(tensor(weight, shape));
        for (std::size_t i = 0; i < x.size(); ++i) x[i] *= weight[i];
        api.output().add(tensor(x, shape));
      }
      module.output().add(tensor(x, shape));
      module.parameters().add(tensor(weight, shape), "weight");
    }
    recorder.step();  // writes recorded/step<N>/proc<pid>/dump.json, stack.json, construct.json
  }
  return recorder.status() == MSPROBE_OK ? 0 : 1;
}
