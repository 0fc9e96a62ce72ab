// SPDX-License-Identifier: Apache-2.0
// Files that lie. What honest files give is in fixtures_test.cpp.
#include "formats/torch_file.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "formats/tensor_file.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "unit/formats/elements.hpp"
#include "unit/formats/peak_memory.hpp"
#include "unit/formats/pt_builder.hpp"
#include "unit/support/complaint.hpp"
#include "unit/support/scratch_directory.hpp"
#include "unit/support/source_root.hpp"

namespace msprobe::formats::torch_file_test {
namespace {

using namespace std::string_literals;

// The message from opening and reading the tensor; empty if it can be read.
std::string complaint(const std::string& bytes) {
  return test::complaint_about("some.pt",
                               [&] { element_hex(open_tensor(memory_source(bytes, "some.pt")), 1 << 16); });
}

std::string read_fixture(const std::string& name) {
  const auto source = open_file(test::in_source("tests/data/formats/" + name));
  return read_all(*source, 1 << 20);
}

}  // namespace

TEST_CASE("the recipe that the hostile files vary is an honest file") {
  CHECK(element_hex(open_tensor(memory_source(build_pt(PtRecipe{}.pickle())))) == "6162636465666768");
}

TEST_CASE("a file that asks for code to run is refused by the name of what it calls, and nothing runs") {
  const test::ScratchDirectory folder;
  const std::string touch = "touch " + folder / "ran";
  const std::string call = global("posix", "system") + pickled(touch) + "\x85R";
  CHECK(complaint(build_pt("\x80\x02" + call + ".")) == "some.pt: refused: the pickle calls posix.system");
  // In front of the tensor and thrown away, in its hooks, in the key of its storage, and as Python 3.11
  // spells it.
  CHECK_REFUSED(build_pt("\x80\x02" + call + "0" + PtRecipe{}.pickle()),
                "refused: the pickle calls posix.system");
  CHECK_REFUSED(build_pt(PtRecipe{.hooks = call}.pickle()), "refused: the pickle calls posix.system");
  CHECK_REFUSED(build_pt(PtRecipe{.key = call}.pickle()), "refused: the pickle calls posix.system");
  CHECK_REFUSED(build_pt(PtRecipe{.after = "0" + call}.pickle()), "refused: the pickle calls posix.system");
  CHECK_REFUSED(build_pt(PtRecipe{.after = call + "0" + call + "b"}.pickle()), "calls posix.system");
  CHECK_REFUSED(build_pt("(" + pickled(touch) + "iposix\nsystem\n."),
                "refused: the pickle calls posix.system");
  CHECK_REFUSED(build_pt("(" + global("os", "system") + pickled(touch) + "o."),
                "refused: the pickle calls os.system");
  CHECK_REFUSED(build_pt("\x8c\x02os\x8c\x06system\x93" + pickled(touch) + "\x85\x81."), "calls os.system");
  CHECK_REFUSED(build_pt(global("builtins", "eval") + pickled(touch) + "\x85R."), "calls builtins.eval");
  CHECK_REFUSED(build_pt(PtRecipe{.rebuild = global("torch._utils", "_rebuild_tensor_v9")}.pickle()),
                "calls torch._utils._rebuild_tensor_v9");
  CHECK(folder.names().empty());
}

TEST_CASE("a hostile name cannot break the line it is shown in") {
  CHECK_REFUSED(build_pt("\x8c\x05os\x1b[m\x8c\x08sys\ntem\r\x93)R."), "refused: the pickle calls os");
  CHECK(complaint(build_pt("\x8c\x05os\x1b[m\x8c\x08sys\ntem\r\x93)R.")).find('\x1b') == std::string::npos);
}

TEST_CASE("anything but one tensor is refused") {
  CHECK_REFUSED(build_pt("N."), "it contains None, not one tensor");
  CHECK_REFUSED(build_pt("}."), "it contains a dict, not one tensor");
  CHECK_REFUSED(build_pt("ctorch._utils\n_rebuild_tensor_v2\n."),
                "it contains a global name, not one tensor");
  CHECK_REFUSED(build_pt("(" + pickled(std::string("storage")) + "tQ."),
                "it contains a storage, not one tensor");
  CHECK_REFUSED(build_pt(PtRecipe{}.pickle() + "N."), "bytes follow the end");
}

TEST_CASE("the storage must be one, of a known type, with the bytes it promises") {
  CHECK_REFUSED(build_pt(PtRecipe{.count = 3}.pickle()), "storage 0 has 8 bytes, but the pickle says 12");
  CHECK_REFUSED(build_pt(PtRecipe{.count = 1}.pickle()), "but the pickle says 4");
  CHECK_REFUSED(build_pt(PtRecipe{.count = -2}.pickle()), "negative size");
  CHECK_REFUSED(build_pt(PtRecipe{.count = INT64_MAX}.pickle()), "more bytes than 64 bits");
  CHECK_REFUSED(build_pt(PtRecipe{.count = INT64_MAX / 4}.pickle()), "but the pickle says");
  CHECK_REFUSED(build_pt(PtRecipe{.key = pickled(std::string("1"))}.pickle()),
                "storage 1 is not in the file");
  CHECK_REFUSED(build_pt(PtRecipe{.key = pickled(std::string("../data.pkl"))}.pickle()),
                "is not in the file");
  CHECK_REFUSED(build_pt(PtRecipe{.key = pickled(std::int64_t{0})}.pickle()),
                "an integer instead of a string");
  CHECK_REFUSED(build_pt(PtRecipe{.storage_class = global("evil", "FloatStorage")}.pickle()),
                "evil.FloatStorage is not supported");
  CHECK_REFUSED(build_pt(PtRecipe{.storage_class = global("torch", "QUInt4x2Storage")}.pickle()),
                "torch.QUInt4x2Storage is not supported");
  CHECK_REFUSED(build_pt(PtRecipe{.storage_class = global("torch", "UntypedStorage"), .count = 8}.pickle()),
                "without an element type");
  CHECK_REFUSED(build_pt(PtRecipe{.storage_class = pickled(std::string("FloatStorage"))}.pickle()),
                "a string instead of a global name");
}

TEST_CASE("storages of devices and separate element types are read by their contents") {
  for (const char* module : {"torch", "torch.cuda", "torch.npu", "torch_npu.npu"}) {
    CHECK(complaint(build_pt(PtRecipe{.storage_class = global(module, "FloatStorage")}.pickle())).empty());
  }
  PtRecipe v3{.rebuild = global("torch._utils", "_rebuild_tensor_v3"),
              .storage_class = global("torch.storage", "UntypedStorage"),
              .count = 8,
              .size = {4},
              .more_arguments = global("torch", "uint16")};
  CHECK(complaint(build_pt(v3.pickle())).empty());
  v3.size = {5};
  CHECK_REFUSED(build_pt(v3.pickle()), "beyond its storage");
  v3.more_arguments = global("torch", "bits8");
  CHECK_REFUSED(build_pt(v3.pickle()), "torch.bits8 is not supported");
  v3.more_arguments = global("elsewhere", "uint16");
  CHECK_REFUSED(build_pt(v3.pickle()), "elsewhere.uint16 is not supported");
}

TEST_CASE("size, stride and offset must stay inside the storage, whatever they overflow") {
  const std::int64_t big = INT64_MAX;
  struct Lie {
    std::int64_t offset;
    std::vector<std::int64_t> size;
    std::vector<std::int64_t> stride;
    const char* words;
  };
  const std::vector<Lie> lies = {
      {0, {3}, {1}, "beyond its storage of 8 bytes"},
      {1, {2}, {1}, "beyond its storage"},
      {2, {1}, {1}, "beyond its storage"},
      {big, {1}, {1}, "beyond its storage"},
      {big, {2}, {1}, "beyond its storage"},
      {0, {2}, {2}, "beyond its storage"},
      {0, {2}, {big}, "beyond its storage"},
      {0, {3}, {big}, "beyond its storage"},
      {0, {2, 2}, {big, big}, "beyond its storage"},
      {-1, {2}, {1}, "negative offset"},
      {0, {-2}, {1}, "negative size"},
      {0, {2}, {-1}, "negative stride"},
      {0, {2}, {1, 1}, "different lengths"},
      {0, {}, {1}, "different lengths"},
      {0, {big, 2}, {0, 0}, "more elements than memory"},
      {0, {0, big, 2}, {0, 0, 0}, "more elements than memory"},
      {0, {std::int64_t{1} << 32, std::int64_t{1} << 32}, {0, 0}, "more elements than memory"},
      {0, {big / 4 + 1}, {0}, "more elements than memory"},
      // A tensor of 226 GB out of a file below 1.6 KB, which any memory may promise to hold.
      {0, {56'500'000'000}, {0}, "refused: a tensor of 226000000000 bytes over a storage of 8 bytes"},
      {0, std::vector<std::int64_t>(65, 1), std::vector<std::int64_t>(65, 1),
       "refused: a tensor of 65 dimensions"},
  };
  for (const Lie& lie : lies) {
    CAPTURE(lie.words);
    CHECK_REFUSED(build_pt(PtRecipe{.offset = lie.offset, .size = lie.size, .stride = lie.stride}.pickle()),
                  lie.words);
  }
  CHECK(complaint(build_pt(PtRecipe{.offset = big, .size = {0, 5}, .stride = {big, big}}.pickle())).empty());
  CHECK(complaint(build_pt(PtRecipe{.size = std::vector<std::int64_t>(64, 1),
                                    .stride = std::vector<std::int64_t>(64, big)}
                               .pickle()))
            .empty());
}

TEST_CASE("arguments of the wrong number or kind are refused") {
  CHECK_REFUSED(build_pt(global("torch._utils", "_rebuild_tensor_v2") + ")R."), "called with 0 arguments");
  CHECK_REFUSED(build_pt(PtRecipe{.more_arguments = "NNN"}.pickle()), "called with 9 arguments");
  CHECK_REFUSED(build_pt(global("torch._utils", "_rebuild_tensor_v2") + "(NNNNtR."),
                "None instead of a storage");
  CHECK_REFUSED(build_pt(global("torch._utils", "_rebuild_parameter") + "(NNNtR."),
                "None instead of an object");
  CHECK_REFUSED(build_pt(global("torch._tensor", "_rebuild_from_type_v2") + "(NNNNtR."), "something else");
  CHECK_REFUSED(build_pt(global("torch._utils", "_rebuild_tensor_v2") + "(NQNNNtR."),
                "None instead of a sequence");
  CHECK(complaint(build_pt(PtRecipe{.more_arguments = "N"}.pickle())).empty());
}

TEST_CASE("tensors wrapped in themselves end") {
  // p = []; p = _rebuild_parameter(p, …) through the memo: a tuple that contains the object made of it.
  const std::string wrap = global("torch._utils", "_rebuild_parameter");
  std::string chain = PtRecipe{}.pickle();
  chain.pop_back();
  for (int i = 0; i < 50; ++i) chain = "\x80\x02" + wrap + "(" + chain.substr(2) + "\x89NtR";
  CHECK_REFUSED(build_pt(chain + "."), "wrapped too many times");
  // A cycle: type arguments that hold themselves through a list.
  const std::string from_type = global("torch._tensor", "_rebuild_from_type_v2");
  CHECK_REFUSED(build_pt(from_type + "(" + from_type + "N]q\x00(" + from_type + "Nh\x00Nt\x65NtR."s), "");
}

TEST_CASE("conj and neg must fit the element type") {
  const auto metadata = [](const char* key) { return "}" + pickled(std::string(key)) + "\x88s"; };
  PtRecipe complex{.storage_class = global("torch", "ComplexFloatStorage"), .count = 1, .size = {1}};
  complex.more_arguments = metadata("conj");
  CHECK(element_hex(open_tensor(memory_source(build_pt(complex.pickle())))) == "61626364656667e8");
  complex.more_arguments = metadata("neg");
  CHECK(element_hex(open_tensor(memory_source(build_pt(complex.pickle())))) == "616263e4656667e8");
  CHECK_REFUSED(
      build_pt(PtRecipe{.storage_class = global("torch", "IntStorage"), .more_arguments = metadata("neg")}
                   .pickle()),
      "negated view of integers");
}

TEST_CASE("archives that are no saved tensor say so") {
  using archive::build_zip;
  CHECK_REFUSED(build_zip({{.name = "t/other", .payload = "x"}}), "without data.pkl");
  CHECK_REFUSED(build_zip({{.name = "no-folder", .payload = "x"}}), "without data.pkl");
  auto script = pt_pieces(PtRecipe{}.pickle(), "abcdefgh");
  script.push_back({.name = "t/constants.pkl", .payload = "N."});
  CHECK_REFUSED(build_zip(script), "TorchScript");
  auto odd = pt_pieces(PtRecipe{}.pickle(), "abcdefgh");
  odd.push_back({.name = "t/byteorder", .payload = "middle"});
  CHECK_REFUSED(build_zip(odd), "neither little nor big");
  odd.back().payload = "little";
  CHECK(complaint(build_zip(odd)).empty());
}

TEST_CASE("wrong magic is named as such") {
  CHECK_REFUSED(""s, "empty file");
  CHECK_REFUSED("x"s, "not a .npy, .npz, .safetensors or .pt file");
  CHECK_REFUSED(std::string(5000, '\0'), "not a .npy, .npz, .safetensors or .pt file");
  CHECK_REFUSED("7z\xbc\xaf\x27\x1c"s + std::string(100, 'x'), "not a .npy, .npz, .safetensors or .pt file");
  CHECK_REFUSED("PK\x05\x06"s + std::string(18, '\0'), "not a .npy, .npz, .safetensors or .pt file");
  CHECK_REFUSED("\x80\x02K\x01."s, "magic number is missing");
  CHECK_REFUSED("PK\x03\x04"s, "no end record");
}

TEST_CASE("every truncation and any single damaged byte of real files ends well") {
  for (const char* name : {"view_slice.pt", "legacy_view.pt", "type_float8_e4m3fn.pt"}) {
    CAPTURE(name);
    const std::string whole = read_fixture(name);
    CHECK(complaint(whole).empty());
    for (std::size_t length = 0; length < whole.size(); ++length) {
      CAPTURE(length);
      CHECK_FALSE(complaint(whole.substr(0, length)).empty());
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x81);
      complaint(damaged);
    }
    CHECK_FALSE(complaint(whole + "x").empty());
  }
}

TEST_CASE("legacy files whose parts disagree are refused") {
  const std::string whole = read_fixture("legacy_float32.pt");
  const std::size_t count = whole.size() - 24 - 8;  // before six floats
  std::string more = whole;
  more[count] = 7;
  CHECK_REFUSED(more, "has 7 elements, but the pickle says 6");
  std::string huge = whole;
  huge[count + 7] = '\x7f';
  CHECK_REFUSED(huge, "but the pickle says 6");
  std::string protocol = whole;
  protocol[17] = 'N';  // was the protocol number 1001
  CHECK_FALSE(complaint(protocol).empty());
}

TEST_CASE("a legacy storage can be a part of another, of either byte order") {
  const std::string data = "abcdefghijklmnop";
  const std::string four = archive::Bytes().u64(4).str();
  const std::string big_four(four.rbegin(), four.rend());
  PtRecipe part{.count = 4, .size = {2}};
  CHECK(element_hex(open_tensor(memory_source(build_legacy(part.pickle(), four, data)))) ==
        "6162636465666768");
  part.view = "(" + pickled(std::string("1")) + "K\x01K\x02t";
  const std::string pickle = part.pickle();
  CHECK(element_hex(open_tensor(memory_source(build_legacy(pickle, four, data)))) == "65666768696a6b6c");
  CHECK(element_hex(open_tensor(memory_source(build_legacy(pickle, big_four, data, false)))) ==
        "686766656c6b6a69");
  CHECK_REFUSED(build_legacy(pickle, four, data, false), "but the pickle says 4");
  part.size = {3};
  CHECK_REFUSED(build_legacy(part.pickle(), four, data), "beyond its storage of 8 bytes");
  part.view = "(" + pickled(std::string("1")) + "K\x03K\x02t";
  CHECK_REFUSED(build_legacy(part.pickle(), four, data), "a storage view reaches beyond its storage");
  part.view = "(NNt";
  CHECK_REFUSED(build_legacy(part.pickle(), four, data), "a storage view is malformed");
}

TEST_CASE("hostile files cost little memory") {
  const std::size_t mebibyte = std::size_t{1} << 20;
  // The costliest opcodes of each kind, up to the limits of a tensor's pickle, then well beyond them.
  for (const std::string opcode : {"]", "}", ")", "N", "(", "]q\x05", "cm\nf\n)R", "N\x85", "2"}) {
    CAPTURE(opcode);
    std::string body = "N";
    while (body.size() < 900'000) body += opcode;
    const std::string bytes = build_pt(body + ".");
    CHECK(peak_growth([&] { CHECK_FALSE(complaint(bytes).empty()); }) < 40 * mebibyte);
  }
  std::string laughs = "N";
  for (int i = 0; i < 10'000; ++i) laughs += "2\x86";
  const std::string laughing = build_pt(laughs + ".");
  CHECK(peak_growth([&] { CHECK_REFUSED(laughing, "a tuple, not one tensor"); }) < 8 * mebibyte);

  // Deflated data.pkl and a storage that unpack to much more than they are.
  const std::string zeros(64 * mebibyte, '\0');
  auto pieces = pt_pieces(PtRecipe{}.pickle(), "abcdefgh");
  pieces[0].payload = archive::deflated(zeros);
  pieces[0].method = 8;
  pieces[0].size = zeros.size();
  const std::string bomb = archive::build_zip(pieces);
  CHECK(peak_growth([&] { CHECK_REFUSED(bomb, "refused: data.pkl of 67108864 bytes"); }) < 4 * mebibyte);
  pieces = pt_pieces(PtRecipe{.count = 1 << 28}.pickle(), archive::deflated(zeros));
  pieces[1].method = 8;
  pieces[1].size = std::size_t{1} << 30;
  const std::string bomb_storage = archive::build_zip(pieces);
  CHECK(peak_growth([&] { CHECK_FALSE(complaint(bomb_storage).empty()); }) < 4 * mebibyte);
}

TEST_CASE("a state dict can be walked, with what surrounds it kept by name") {
  // {"model": OrderedDict(w=tensor, b=tensor), "args": Namespace(n=3), "evil": posix.system("x")}
  std::string tensor = PtRecipe{}.pickle().substr(2);
  tensor.pop_back();
  const std::string bytes = build_pt(
      "\x80\x02}(" + pickled(std::string("model")) + global("collections", "OrderedDict") + ")R(" +
      pickled(std::string("w")) + tensor + pickled(std::string("b")) + tensor + "u}" +
      pickled(std::string("_metadata")) + "}sb" + pickled(std::string("args")) +
      global("argparse", "Namespace") + ")\x81}" + pickled(std::string("n")) + "K\x03sb" +
      pickled(std::string("evil")) + global("posix", "system") + pickled(std::string("x")) + "\x85Ru.");
  const TorchFile file(memory_source(bytes));
  const Pickle& pickle = file.pickle();
  const auto model = pickle.find(pickle.root(), "model");
  REQUIRE(model);
  REQUIRE(pickle.pairs(*model).size() == 4);
  CHECK(pickle.text(pickle.pairs(*model)[2]) == "b");
  CHECK(file.is_tensor(pickle.pairs(*model)[3]));
  CHECK(element_hex(file.tensor(pickle.pairs(*model)[3])) == "6162636465666768");
  CHECK_FALSE(file.is_tensor(*model));
  CHECK_THROWS_AS((void)file.tensor(*model), FormatError);
  const PickleObject& args = pickle.object(*pickle.find(pickle.root(), "args"));
  CHECK(pickle.global(args.callable).full_name() == "argparse.Namespace");
  CHECK(pickle.integer(*pickle.find(args.state, "n")) == 3);
  const auto evil = pickle.find(pickle.root(), "evil");
  CHECK_FALSE(file.is_tensor(*evil));
  CHECK(pickle.global(pickle.object(*evil).callable).called);
}

}  // namespace msprobe::formats::torch_file_test
