// SPDX-License-Identifier: Apache-2.0
// Contents of the members, with checksums that are right: name, NUL, contents, NUL, for one pack after the
// other.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "config_check/checks.hpp"
#include "fuzz_target.hpp"
#include "pack/pack_reader.hpp"
#include "unit/archive/zip_builder.hpp"

namespace {

using msprobe::config_check::SheetSection;

void read_rows(const SheetSection& section) {
  std::vector<msprobe::report::Cell> cells;
  msprobe::report::Scratch scratch;
  for (std::size_t i = 0; section.table && i < section.table->rows(); ++i) {
    section.table->row(i, cells, scratch);
    if (cells.size() != section.table->columns().size()) throw std::logic_error("a row of another width");
  }
}

}  // namespace

FUZZ_READER(pack_contents)(const std::uint8_t* data, std::size_t size) {
  using namespace msprobe;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  std::vector<archive::Piece> pieces[2];
  std::size_t side = 0;
  for (std::size_t at = 0; at < input.size() && pieces[0].size() + pieces[1].size() < 64;) {
    const std::size_t name_end = std::min(input.find('\0', at), input.size());
    const std::size_t begin = std::min(name_end + 1, input.size());
    const std::size_t end = std::min(input.find('\0', begin), input.size());
    const std::string name(input.substr(at, name_end - at));
    at = end + 1;
    if (name == "--") {
      side = 1;
      continue;
    }
    if (!name.empty())
      pieces[side].push_back({.name = name, .payload = std::string(input.substr(begin, end - begin))});
  }
  const pack::Pack bench(memory_source(archive::build_zip(pieces[0]), "bench"));
  const pack::Pack cmp(memory_source(archive::build_zip(pieces[1]), "cmp"));
  const config_check::Packs packs{bench, cmp};
  static const config_check::Tables tables = config_check::default_tables();
  for (const pack::Section which : pack::kSections) {
    if (bench.members(which).empty() || cmp.members(which).empty()) continue;
    unless_refused([&] {
      switch (which) {
        case pack::Section::env:
          read_rows(config_check::check_environment(packs, tables));
          break;
        case pack::Section::pip:
          read_rows(config_check::check_packages(packs, tables, true));
          break;
        case pack::Section::dataset:
          read_rows(config_check::check_dataset(packs));
          break;
        case pack::Section::weights:
          read_rows(config_check::check_weights(packs));
          break;
        case pack::Section::hyperparameters:
          read_rows(config_check::check_hyper_parameters(packs, tables));
          break;
        case pack::Section::random:
          read_rows(config_check::check_random(packs));
          break;
      }
    });
  }
}
