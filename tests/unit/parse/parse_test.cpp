// SPDX-License-Identifier: Apache-2.0
#include "parse/parse.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>

#include "archive/zip_writer.hpp"
#include "formats/npy.hpp"
#include "formats/tensor_set.hpp"
#include "formats/torch_file.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/parallel.hpp"
#include "unit/formats/elements.hpp"
#include "unit/formats/golden_parse.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::parse::parse_test {
namespace {

namespace fs = std::filesystem;
using formats::OutputFormat;
using test::put_file;
using test::read_file;
using test::ScratchDirectory;

const std::string kBin = "dims=2\n$End=1\nabcdefgh";
const std::string kBytes = "6162636465666768";

ParseReport convert(const std::string& input, const std::string& output, OutputFormat format,
                    bool recursive = false) {
  ParseOptions options;
  options.input = input;
  options.output_directory = output;
  options.format = format;
  options.recursive = recursive;
  return parse(options, nullptr);
}

/// Every file below a folder with its bytes.
std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      found[fs::relative(entry.path(), folder).string()] = read_file(entry.path().string());
  }
  return found;
}

std::string problem_of(const ParseReport& report, const std::string& file) {
  for (const FileResult& each : report.files) {
    if (each.file != file) continue;
    if (!each.problem.empty()) return each.problem;
    for (const TensorResult& tensor : each.tensors) {
      if (!tensor.problem.empty()) return tensor.problem;
    }
    return {};
  }
  return "no such file in the report";
}

std::string npy_hex(const std::string& path) {
  return formats::element_hex(formats::open_npy(open_file(path)));
}

}  // namespace

TEST_CASE("dumps become, byte for byte, the arrays that the Python tool writes") {
  const ScratchDirectory scratch;
  const std::string golden = formats::golden_parse();
  CHECK(convert(golden + "atb/in/ok", scratch / "atb", OutputFormat::npy).failures() == 0);
  const ParseReport adump = convert(golden + "adump/in", scratch / "adump", OutputFormat::npy);
  CHECK(adump.failures() == 7);
  int compared = 0;
  for (const std::string generation : {"atb", "adump"}) {
    for (const auto& [name, bytes] : contents(golden + generation + "/out")) {
      if (name.ends_with(".pt")) continue;
      // Intended differences: one-byte floats as float32, and an empty tensor keeps its type.
      if (name.starts_with("Low.") ||
          name.find("scalar_and_empty.32.5.1636595794731103.input.1") != std::string::npos)
        continue;
      CAPTURE(name);
      ++compared;
      CHECK(contents(scratch / generation)[name] == bytes);
    }
  }
  CHECK(compared == 17 + 25);
}

TEST_CASE("tensors written for PyTorch are those that the Python tool wrote") {
  const ScratchDirectory scratch;
  const std::string golden = formats::golden_parse();
  convert(golden + "atb/in/ok", scratch / "atb", OutputFormat::pt);
  convert(golden + "adump/in", scratch / "adump", OutputFormat::pt);
  int compared = 0;
  for (const std::string generation : {"atb", "adump"}) {
    for (const auto& [name, bytes] : contents(golden + generation + "/out")) {
      if (!name.ends_with(".pt") || name.starts_with("Low.") || name.find("input.1.pt") != std::string::npos)
        continue;
      CAPTURE(name);
      ++compared;
      const auto got = formats::open_torch_tensor(open_file(scratch / (generation + "/" + name)));
      const auto want = formats::open_torch_tensor(memory_source(bytes));
      CHECK(got.dtype == want.dtype);
      CHECK(got.shape == want.shape);
      CHECK(formats::element_hex(got) == formats::element_hex(want));
    }
  }
  CHECK(compared == 34);
}

TEST_CASE("a name that is too long becomes its UUID, and mapping.csv says so") {
  const ScratchDirectory scratch;
  const std::string golden = formats::golden_parse();
  const std::string name =
      "L" + std::string(19, 'L') + "." + std::string(200, 'n') + ".44.5.1636595794731103";
  fs::create_directory(scratch / "in");
  put_file(scratch / ("in/" + name), read_file(golden + "adump/in/long_name_case.payload"));
  REQUIRE(convert(scratch / "in", scratch / "out", OutputFormat::npy).failures() == 0);
  const auto files = contents(scratch / "out");
  REQUIRE(files.size() == 2);
  const std::string renamed = files.begin()->first;
  CHECK(renamed.size() == 36);
  CHECK(files.at("mapping.csv") == renamed + "," + name + ".output.0.npy\n");
  // Once more: the line is not there twice, and others stay.
  put_file(scratch / "out/mapping.csv", "old,line\n" + files.at("mapping.csv"));
  convert(scratch / "in", scratch / "out", OutputFormat::npy);
  CHECK(contents(scratch / "out").at("mapping.csv") == "old,line\n" + files.at("mapping.csv"));
}

TEST_CASE("what fails is listed, and the rest is converted") {
  const ScratchDirectory scratch;
  fs::create_directory(scratch / "in");
  put_file(scratch / "in/a.bin", kBin);
  put_file(scratch / "in/b.bin", kBin + "x");
  put_file(scratch / "in/c", "no dump");
  put_file(scratch / "in/statistic.csv", "a,b\n");
  ParseReport report = convert(scratch / "in", scratch / "out", OutputFormat::npy);
  CHECK(report.failures() == 2);
  CHECK(report.skipped == std::vector<std::string>{"statistic.csv"});
  CHECK(read_file(scratch / "out/convert_failed_file_list.txt") ==
        (scratch / "in/b.bin") + "\n" + (scratch / "in/c") + "\n");
  CHECK(npy_hex(scratch / "out/a.npy") == kBytes);
  // A list of a former run goes when nothing fails any more.
  fs::remove(scratch / "in/b.bin");
  fs::remove(scratch / "in/c");
  CHECK(convert(scratch / "in", scratch / "out", OutputFormat::npy).failures() == 0);
  CHECK(contents(scratch / "out").size() == 1);
}

TEST_CASE("folders below are searched on request, and results keep their places") {
  const ScratchDirectory scratch;
  fs::create_directories(scratch / "in/x/y");
  put_file(scratch / "in/a.bin", kBin);
  put_file(scratch / "in/x/a.bin", kBin);
  put_file(scratch / "in/x/y/a.bin", kBin);
  CHECK(convert(scratch / "in", scratch / "flat", OutputFormat::npy).files.size() == 1);
  CHECK(convert(scratch / "in", scratch / "deep", OutputFormat::npy, true).files.size() == 3);
  CHECK(npy_hex(scratch / "deep/x/y/a.npy") == kBytes);
  // Results inside the input are not taken for inputs the next time.
  CHECK(convert(scratch / "in", scratch / "in/x/out", OutputFormat::npy, true).failures() == 0);
  CHECK(convert(scratch / "in", scratch / "in/x/out", OutputFormat::npy, true).files.size() == 3);
}

TEST_CASE("links are followed inside the folder, and nowhere else") {
  const ScratchDirectory scratch;
  fs::create_directories(scratch / "in/sub");
  put_file(scratch / "secret.bin", kBin);
  put_file(scratch / "in/a.bin", kBin);
  fs::create_symlink("a.bin", scratch / "in/inside.bin");
  fs::create_symlink("../a.bin", scratch / "in/sub/up.bin");
  fs::create_symlink("../secret.bin", scratch / "in/out.bin");
  fs::create_symlink(scratch / "secret.bin", scratch / "in/sub/absolute.bin");
  fs::create_symlink("nowhere", scratch / "in/broken.bin");
  fs::create_symlink("..", scratch / "in/sub/loop");
  fs::create_symlink("/", scratch / "in/everything");
  REQUIRE(::mkfifo((scratch / "in/pipe").c_str(), 0600) == 0);
  put_file(scratch / "in/refers.bin", "dims=2\ndata=out.bin\n$End=1\n");
  const ParseReport report = convert(scratch / "in", scratch / "out", OutputFormat::npy, true);
  CHECK(problem_of(report, "inside.bin").empty());
  CHECK(problem_of(report, "sub/up.bin").empty());
  for (const char* name : {"out.bin", "sub/absolute.bin", "everything", "refers.bin"}) {
    CAPTURE(std::string(name));
    CHECK(problem_of(report, name).find("leads outside") != std::string::npos);
  }
  CHECK(problem_of(report, "broken.bin").find("a broken symbolic link") != std::string::npos);
  CHECK(problem_of(report, "pipe").find("not a regular file") != std::string::npos);
  CHECK(report.files.size() == 9);
  CHECK(contents(scratch / "out").size() == 4);
  // A file that was named is read, link or not.
  CHECK(convert(scratch / "in/out.bin", scratch / "named", OutputFormat::npy).failures() == 0);
}

TEST_CASE("no input is replaced by a result, and no result by another") {
  const ScratchDirectory scratch;
  fs::create_directory(scratch / "in");
  put_file(scratch / "in/a.BIN", kBin);
  put_file(scratch / "in/a.bin", kBin);
  put_file(scratch / "in/b.bin", kBin);
  const ParseReport report = convert(scratch / "in", scratch / "in", OutputFormat::bin);
  CHECK(problem_of(report, "a.BIN").find("replace one of the inputs") != std::string::npos);
  CHECK(problem_of(report, "a.bin").find("a.BIN") != std::string::npos);
  CHECK(problem_of(report, "b.bin").find("replace one of the inputs") != std::string::npos);
  CHECK(read_file(scratch / "in/b.bin") == kBin);
  CHECK(read_file(scratch / "in/a.bin") == kBin);
}

TEST_CASE("files of several tensors become one file, or one for each tensor") {
  const ScratchDirectory scratch;
  fs::create_directory(scratch / "in");
  {
    OutputFile file(scratch / "in/w.npz");
    archive::ZipWriter zip(file, archive::ZipStyle::plain);
    zip.add("layer/weight.npy", formats::npy_header(tensor::DType::int16, {2}) + "abcd");
    zip.add("../../evil.npy",
            formats::npy_header(tensor::DType::boolean, {3}) + std::string("\x00\x01\x07", 3));
    zip.add("broken.npy", "\x93NUMPY");
    zip.finish();
    file.commit();
  }
  ParseReport report = convert(scratch / "in", scratch / "npy", OutputFormat::npy);
  CHECK(report.failures() == 1);
  CHECK(npy_hex(scratch / "npy/w.layer_weight.npy") == "61626364");
  CHECK(npy_hex(scratch / "npy/w..._.._evil.npy") == "000101");  // any byte but 0 is True
  CHECK(contents(scratch / "npy").size() == 3);
  for (const OutputFormat format : {OutputFormat::pt, OutputFormat::safetensors, OutputFormat::npz}) {
    report = convert(scratch / "in", scratch / "one", format);
    CHECK(report.failures() == 1);
    CHECK(problem_of(report, "w.npz").find("truncated") != std::string::npos);
    const auto set =
        formats::open_tensors(open_file(scratch / ("one/w." + std::string(formats::extension(format)))));
    REQUIRE(set->size() == 2);
    const std::size_t weight = set->name(0) == "layer/weight" ? 0 : 1;
    CHECK(set->name(weight) == "layer/weight");
    CHECK(set->name(1 - weight) == "../../evil");
    CHECK(formats::element_hex(set->tensor(weight)) == "61626364");
  }
}

TEST_CASE("bare elements take the type and shape that are given") {
  const ScratchDirectory scratch;
  fs::create_directory(scratch / "in");
  put_file(scratch / "in/a.bin", "abcdefgh");
  put_file(scratch / "in/b", "abcd");
  ParseOptions options;
  options.input = scratch / "in";
  options.output_directory = scratch / "out";
  options.format = OutputFormat::npy;
  options.raw_dtype = tensor::DType::int16;
  CHECK(parse(options, nullptr).failures() == 0);
  CHECK(formats::open_npy(open_file(scratch / "out/a.npy")).shape == std::vector<std::int64_t>{4});
  CHECK(npy_hex(scratch / "out/b.npy") == "61626364");
  options.raw_shape = {2, 2};
  ParseReport report = parse(options, nullptr);
  CHECK(problem_of(report, "b").find("takes 8 bytes, but it has 4") != std::string::npos);
  CHECK(formats::open_npy(open_file(scratch / "out/a.npy")).shape == std::vector<std::int64_t>{2, 2});
  options.raw_shape = {std::int64_t{1} << 62, 4};
  CHECK(parse(options, nullptr).failures() == 2);
  options.raw_shape.reset();
  options.raw_dtype = tensor::DType::complex128;
  CHECK(problem_of(parse(options, nullptr), "a.bin").find("not a whole number") != std::string::npos);
}

TEST_CASE("statistics of what was converted") {
  const ScratchDirectory scratch;
  put_file(scratch / "a.bin",
           "dtype=3\ndims=4\n$End=1\n" + std::string("\x03\0\0\0\x00\0\0\0\xfc\xff\xff\xff\x00\0\0\0", 16));
  const ParseReport report = convert(scratch / "a.bin", scratch / "out", OutputFormat::safetensors);
  REQUIRE(report.files.size() == 1);
  REQUIRE(report.files[0].tensors.size() == 1);
  const TensorResult& tensor = report.files[0].tensors[0];
  CHECK(tensor.output == "a.safetensors");
  CHECK(tensor.dtype == "int32");
  REQUIRE(tensor.statistics.has_value());
  CHECK(tensor.statistics->min == -4);
  CHECK(tensor.statistics->max == 3);
  CHECK(tensor.statistics->mean() == -0.25);
  CHECK(tensor.statistics->norm() == 5);
}

TEST_CASE("the results are the same at any number of threads") {
  const ScratchDirectory scratch;
  std::map<std::string, std::string> first;
  for (const int jobs : {1, 8}) {
    const ThreadLimit limit(jobs);
    const std::string out = scratch / std::to_string(jobs);
    convert(formats::golden_parse(), out, OutputFormat::pt, true);
    if (jobs == 1) first = contents(out);
  }
  CHECK(first.size() > 50);
  CHECK(contents(scratch / "8") == first);
}

TEST_CASE("no such input, nothing in it, no place for the output") {
  const ScratchDirectory scratch;
  fs::create_directories(scratch / "empty/folder");
  CHECK_THROWS_AS(convert(scratch / "missing", scratch / "out", OutputFormat::pt), IoError);
  CHECK_THROWS_AS(convert("", scratch / "out", OutputFormat::pt), IoError);
  CHECK_THROWS_AS(convert(scratch / "empty", scratch / "out", OutputFormat::pt), IoError);
  CHECK_FALSE(fs::exists(scratch / "out"));
  put_file(scratch / "a.bin", kBin);
  CHECK_THROWS_AS(convert(scratch / "a.bin", scratch / "a.bin/out", OutputFormat::pt), IoError);
}

}  // namespace msprobe::parse::parse_test
