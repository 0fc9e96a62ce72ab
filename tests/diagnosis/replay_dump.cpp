// SPDX-License-Identifier: Apache-2.0
// Prints what the replay says of every forward entry of a dump: name, place, status, r, tolerance.
//
// usage: replay_dump FOLDER    (the folder of a dump.json)
#include <cstdio>
#include <string>

#include "diagnosis/replay/replay.hpp"
#include "dump/dump_json.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"

int main(int argc, char** argv) {
  using namespace msprobe;
  namespace replay = diagnosis::replay;
  if (argc != 2) return 2;
  try {
    const std::string folder = argv[1];
    const auto file = open_file(folder + "/dump.json");
    dump::read_dump_json(*file, [&](std::string_view name, const dump::Entry& entry) {
      for (const auto& output : replay::replay_entry(name, entry, folder + "/dump_tensor_data")) {
        std::printf("%s\t%s\t%s\t%.4g\t%.4g\n", std::string(name).c_str(), output.place.c_str(),
                    std::string(to_text(output.status)).c_str(), output.r, output.tolerance);
      }
    });
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
