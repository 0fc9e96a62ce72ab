// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/error_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "formats/tensor_writer.hpp"
#include "support/output_file.hpp"

namespace msprobe::precheck {
namespace {

constexpr std::size_t kSavedPiece = std::size_t{1} << 20;

/// Makes a file name from the name of a call. Such names come from a file, so that no part of them may lead
/// out of the folder.
std::string file_name(const std::string& call, std::string_view part, std::size_t index) {
  std::string name = fmt::format("{}.{}.{}.pt", call, part, index);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || static_cast<unsigned char>(c) < 0x20; }, '_');
  return name;
}

class OutputSaver {
 public:
  OutputSaver(const std::string& folder, const std::string& call, std::string_view part)
      : folder_(folder), call_(call), part_(part) {}

  void save_all(const CallOutput& output) {
    if (const auto* list = std::get_if<CallOutput::List>(&output.value)) {
      for (const CallOutput& element : list->elements) save_all(element);
      return;
    }
    const std::size_t index = next_++;
    const auto* tensor = std::get_if<TensorOutput>(&output.value);
    if (tensor == nullptr) return;
    save_tensor(folder_ + '/' + file_name(call_, part_, index), tensor->dtype, tensor->shape,
                tensor->bytes.size(), [&](std::uint64_t at, std::span<std::byte> out) {
                  std::copy_n(tensor->bytes.begin() + static_cast<std::ptrdiff_t>(at), out.size(),
                              out.begin());
                  return true;
                });
  }

 private:
  const std::string& folder_;
  const std::string& call_;
  std::string_view part_;
  std::size_t next_ = 0;
};

}  // namespace

void save_tensor(const std::string& path, tensor::DType dtype, const std::vector<std::uint64_t>& shape,
                 std::uint64_t size, const TensorBytes& fill) {
  if (formats::written_dtype(formats::OutputFormat::pt, dtype) != dtype) return;
  OutputFile file(path);
  const auto writer = formats::make_tensor_writer(formats::OutputFormat::pt, file,
                                                  {{"", dtype, {shape.begin(), shape.end()}}});
  writer->begin(0);
  std::vector<std::byte> piece;
  const std::size_t most = kSavedPiece * tensor::info(dtype).size;
  for (std::uint64_t at = 0; at < size; at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(most, size - at));
    if (!fill(at, piece)) return;
    writer->write(piece);
  }
  writer->end();
  writer->finish();
  file.commit();
}

std::string input_file_name(const std::string& call, const RequestTensor& input) {
  return file_name(call, input.gradient ? "backward.input" : "forward.input", input.index);
}

void save_inputs(const std::string& folder, const std::string& call, const CallRequest& request,
                 const SharedFile& payload) {
  create_directories(folder);
  for (const RequestTensor& input : request.tensors) {
    save_tensor(
        folder + '/' + input_file_name(call, input), input.dtype, input.shape, input.size,
        [&](std::uint64_t at, std::span<std::byte> out) { return payload.read_at(input.offset + at, out); });
  }
}

void save_outputs(const std::string& folder, const std::string& call, std::string_view part,
                  const CallOutput& output) {
  create_directories(folder);
  OutputSaver(folder, call, part).save_all(output);
}

}  // namespace msprobe::precheck
