// SPDX-License-Identifier: Apache-2.0
// Drives fuzz targets without an engine: `fuzz_replay TARGET FILES` runs the files and folders given, with
// `--mutate N --seed S` also N mutations of them, the same ones for the same seed. The last input is kept in
// `--keep FILE` (default: not kept) so that a crash can be looked at.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

// FUZZ_TARGETS(X): X(name) for each target, as the build has it.
#define DECLARE(name) extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size);
FUZZ_TARGETS(DECLARE)

namespace {

namespace fs = std::filesystem;
using Input = std::vector<std::uint8_t>;

struct Target {
  std::string_view name;
  int (*run)(const std::uint8_t* data, std::size_t size);
};

#define LIST(name) Target{#name, fuzz_##name},
constexpr std::array kTargets = {FUZZ_TARGETS(LIST)};

constexpr std::size_t kLongestInput = 16'384;  // of a mutated input

template <typename Bytes>
auto begin(Bytes& bytes, std::size_t offset) {
  return bytes.begin() + static_cast<std::ptrdiff_t>(offset);
}

void insert(Input& input, std::size_t at, const Input& part) {
  if (input.size() + part.size() <= kLongestInput) input.insert(begin(input, at), part.begin(), part.end());
}

class Mutator {
 public:
  Mutator(std::vector<Input> seeds, std::uint64_t seed) : seeds_(std::move(seeds)), random_(seed) {}

  Input next() {
    Input input = seeds_[below(seeds_.size())];
    for (std::size_t steps = 1 + below(4); steps > 0; --steps) mutate(input);
    input.resize(std::min(input.size(), kLongestInput));
    return input;
  }

 private:
  // Not std::uniform_int_distribution: its numbers differ between libraries.
  std::size_t below(std::size_t limit) {
    return limit == 0 ? 0 : static_cast<std::size_t>(random_() % limit);
  }

  // Numbers that containers, lengths and products stumble over.
  std::uint64_t number() {
    constexpr std::array<std::uint64_t, 18> kEdges = {
        0,          1,           2,          0x7f,       0x80,       0xff,
        0x7fff,     0x8000,      0xffff,     0x7fffffff, 0x80000000, 0xfffffffe,
        0xffffffff, 0x100000000, 1ULL << 62, ~0ULL >> 1, ~0ULL,      ~0ULL - 30};
    return below(4) == 0 ? random_() >> below(64) : kEdges[below(kEdges.size())];
  }

  void mutate(Input& input) {
    if (input.empty()) {
      input.push_back(static_cast<std::uint8_t>(below(256)));
      return;
    }
    const std::size_t at = below(input.size());
    const std::size_t left = input.size() - at;
    switch (below(10)) {
      case 0:
        input[at] ^= static_cast<std::uint8_t>(1U << below(8));
        break;
      case 1:
        input[at] = static_cast<std::uint8_t>(below(256));
        break;
      case 2: {  // a little-endian field
        const std::size_t width = std::min(left, std::size_t{1} << below(4));
        const std::uint64_t value = number();
        for (std::size_t i = 0; i < width; ++i) input[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
        break;
      }
      case 3: {  // a number a little off, as an off-by-one would be
        input[at] = static_cast<std::uint8_t>(input[at] + (below(2) == 0 ? 1 : 255));
        break;
      }
      case 4:  // cut
        input.resize(at);
        break;
      case 5:  // take out
        input.erase(begin(input, at), begin(input, at + 1 + below(std::min<std::size_t>(left, 32))));
        break;
      case 6: {  // repeat
        const Input part(begin(input, at), begin(input, at + 1 + below(std::min<std::size_t>(left, 64))));
        for (std::size_t times = 1 + below(3); times > 0; --times)
          insert(input, below(input.size() + 1), part);
        break;
      }
      case 7: {  // another seed's part
        const Input& other = seeds_[below(seeds_.size())];
        const std::size_t from = below(other.size());
        const std::size_t length = below(std::min<std::size_t>(other.size() - from, 200) + 1);
        insert(input, at, Input(begin(other, from), begin(other, from + length)));
        break;
      }
      case 8: {  // overwrite with a part of itself
        const std::size_t from = below(input.size());
        const std::size_t length = std::min({left, input.size() - from, std::size_t{1} + below(40)});
        const Input part(begin(input, from), begin(input, from + length));
        std::copy(part.begin(), part.end(), begin(input, at));
        break;
      }
      default: {  // a decimal number, where there is one
        const auto digit =
            std::find_if(begin(input, at), input.end(), [](std::uint8_t c) { return c >= '0' && c <= '9'; });
        if (digit == input.end()) break;
        const std::string text = std::to_string(number());
        const auto where = static_cast<std::size_t>(digit - input.begin());
        input.erase(digit);
        insert(input, where, Input(text.begin(), text.end()));
        break;
      }
    }
  }

  std::vector<Input> seeds_;
  std::mt19937_64 random_;
};

Input read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<fs::path> files_below(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::uint64_t parse(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    std::cerr << "not a number: " << text << '\n';
    std::exit(2);
  }
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + std::min(argc, 2), argv + argc);
  const auto* const target = std::find_if(
      kTargets.begin(), kTargets.end(), [&](const Target& each) { return argc > 1 && each.name == argv[1]; });
  if (target == kTargets.end()) {
    std::cerr << "usage: fuzz_replay TARGET [--mutate N] [--seed S] [--keep FILE] FILES; the targets:";
    for (const Target& each : kTargets) std::cerr << ' ' << each.name;
    std::cerr << '\n';
    return 2;
  }
  std::uint64_t mutations = 0;
  std::uint64_t seed = 1;
  std::string keep;
  std::vector<Input> inputs;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--mutate" && has_value) {
      mutations = parse(arguments[++i]);
    } else if (arguments[i] == "--seed" && has_value) {
      seed = parse(arguments[++i]);
    } else if (arguments[i] == "--keep" && has_value) {
      keep = arguments[++i];
    } else if (fs::exists(arguments[i])) {
      for (const fs::path& file : files_below(arguments[i])) inputs.push_back(read_file(file));
    } else {
      std::cerr << "no such file or option: " << arguments[i] << '\n';
      return 2;
    }
  }
  if (inputs.empty()) {
    std::cerr << "no seeds given\n";
    return 2;
  }
  for (const Input& input : inputs) target->run(input.data(), input.size());
  std::cout << inputs.size() << " seeds";
  Mutator mutator(inputs, seed);
  for (std::uint64_t i = 0; i < mutations; ++i) {
    const Input input = mutator.next();
    if (!keep.empty()) {
      std::ofstream(keep, std::ios::binary)
          .write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
    }
    target->run(input.data(), input.size());
  }
  std::cout << " and " << mutations << " mutations run\n";
  return 0;
}
