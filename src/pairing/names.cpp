// SPDX-License-Identifier: Apache-2.0
#include "pairing/names.hpp"

#include <algorithm>
#include <array>

#include "dump/names.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::pairing {
namespace {

/// The longest name of a module. Real names are far shorter, and looking for parts of a name takes time.
constexpr std::size_t kLongestName = std::size_t{4} << 10;

/// The end of a module's path: the position of `.forward`, `.backward` or `.parameters_grad`.
std::size_t path_end(std::string_view name) {
  std::size_t end = name.size();
  for (const std::string_view word : {".forward", ".backward", ".parameters_grad"}) {
    for (std::size_t at = name.find(word); at < end; at = name.find(word, at + 1)) {
      const std::size_t behind = at + word.size();
      if (behind == name.size() || name[behind] == '.') end = at;
    }
  }
  return end;
}

}  // namespace

std::string_view operation_of(std::string_view name) {
  const std::size_t first = name.find('.');
  return first == std::string_view::npos ? name : name.substr(0, name.find('.', first + 1));
}

std::string to_pytorch(std::string_view name, const NameMapping& table) {
  if (name.starts_with("Mint.")) return "Torch" + std::string(name.substr(4));
  if (name.starts_with("MintFunctional.")) return std::string(name.substr(4));
  const std::string_view operation = operation_of(name);
  const std::string* known = table.find(operation);
  return known == nullptr ? std::string(name) : *known + std::string(name.substr(operation.size()));
}

std::string cell_to_module(std::string_view name) {
  return name.starts_with("Cell.") ? "Module" + std::string(name.substr(4)) : std::string(name);
}

CellNames::CellNames(const NameMapping& mapping, std::string file)
    : mapping_(mapping), file_(std::move(file)) {
  sorted_.resize(mapping.entries().size());
  for (std::size_t i = 0; i < sorted_.size(); ++i) sorted_[i] = static_cast<std::uint32_t>(i);
  std::ranges::sort(sorted_, [&](std::uint32_t a, std::uint32_t b) {
    return mapping_.entries()[a].first < mapping_.entries()[b].first;
  });
}

CellNames::CellPlace CellNames::first_in(std::string_view text, std::size_t from) const {
  const auto key = [&](std::size_t place) -> const std::string& {
    return mapping_.entries()[sorted_[place]].first;
  };
  CellPlace best{mapping_.entries().size(), 0};
  for (std::size_t start = 0; start < text.size(); ++start) {
    // Narrows the keys that begin like the text at this position, by one more character each time.
    std::size_t low = 0;
    std::size_t high = sorted_.size();
    for (std::size_t depth = 0; low < high; ++depth) {
      if (key(low).size() == depth) {
        const std::size_t entry = sorted_[low];
        if (entry >= from && entry < best.entry) best = {entry, start};
        ++low;
      }
      if (start + depth == text.size()) break;
      const auto c = static_cast<unsigned char>(text[start + depth]);
      const auto at = [&](std::uint32_t entry) {
        return static_cast<unsigned char>(mapping_.entries()[entry].first[depth]);
      };
      const auto begin = sorted_.begin();
      const auto from_here = std::lower_bound(
          begin + static_cast<std::ptrdiff_t>(low), begin + static_cast<std::ptrdiff_t>(high), c,
          [&](std::uint32_t entry, unsigned char v) { return at(entry) < v; });
      const auto to_here =
          std::upper_bound(from_here, begin + static_cast<std::ptrdiff_t>(high), c,
                           [&](unsigned char v, std::uint32_t entry) { return v < at(entry); });
      low = static_cast<std::size_t>(from_here - begin);
      high = static_cast<std::size_t>(to_here - begin);
    }
  }
  return best;
}

std::string CellNames::translate(std::string_view path) {
  if (const std::string* whole = mapping_.find(path)) {
    applied_ = true;
    return *whole;
  }
  std::string text(path);
  if (text.size() > kLongestName) return text;
  for (std::size_t from = 0;;) {
    const CellPlace found = first_in(text, from);
    if (found.entry == mapping_.entries().size()) return text;
    applied_ = true;
    const auto& [part, instead] = mapping_.entries()[found.entry];
    text.replace(found.at, part.size(), instead);
    if (text.size() > kLongestName)
      throw FormatError(display(file_), "the name of a module becomes longer than 4 KiB");
    from = found.entry + 1;
  }
}

std::string CellNames::operator()(std::string_view name) {
  std::string out = cell_to_module(name);
  const std::size_t begin = out.find('.') + 1;
  const std::size_t end = path_end(out);
  if (mapping_.entries().empty() || begin >= end) return out;
  const std::string path = out.substr(begin, end - begin);
  const auto [place, is_new] = known_.try_emplace(path);
  if (is_new) place->second = translate(path);
  return out.replace(begin, path.size(), place->second);
}

std::string without_call(std::string_view name) {
  const auto parsed = dump::parse_entry_name(name);
  if (!parsed || parsed->call.empty()) return std::string(name);
  constexpr std::array<const char*, 3> kDirections = {".forward", ".backward", ".parameters_grad"};
  if (parsed->direction == dump::Direction::debug) return std::string(name);
  return std::string(parsed->base) + kDirections[static_cast<std::size_t>(parsed->direction)];
}

}  // namespace msprobe::pairing
