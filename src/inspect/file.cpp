// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "formats/element_values.hpp"
#include "formats/foreign_files.hpp"
#include "formats/gguf.hpp"
#include "formats/npz.hpp"
#include "formats/pickle_scan.hpp"
#include "formats/safetensors.hpp"
#include "formats/tensor_set.hpp"
#include "formats/torch_tensors.hpp"
#include "inspect/contents.hpp"
#include "inspect/facts.hpp"
#include "inspect/onnx_graph.hpp"
#include "inspect/pickles.hpp"
#include "inspect/plain_files.hpp"
#include "inspect/second_archives.hpp"
#include "inspect/text_blocks.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::inspect {
namespace {

using formats::Container;
using formats::Pickle;
using formats::PickleKind;
using formats::PickleRef;
using formats::StoredTensor;
using Source = std::shared_ptr<const ByteSource>;

constexpr std::size_t kMostValues = 50;
constexpr std::size_t kMostText = 60;
// The number of pickles in a legacy PyTorch file: the fourth one is the saved object. The storages follow.
constexpr int kLegacyPickles = 5;

class FileInspector {
 public:
  /// Without options the tensors are not listed, and a file of any kind is rated.
  FileInspector(Source source, const Options* options, PathFacts& facts)
      : source_(std::move(source)),
        options_(options),
        facts_(facts),
        file_(facts.file.emplace()),
        pickles_(source_, facts),
        contents_(source_, facts, pickles_, is_rated()) {}

  void run() {
    file_.size = source_->size();
    if (file_.size == 0) {
      file_.container = "empty file";
      if (options_ != nullptr) problem("an empty file");
      return;
    }
    file_.container = "broken zip archive";  // if container_of() throws
    Container container = Container::unknown;
    try {
      container = formats::container_of(source_);
    } catch (const FormatError&) {
      const auto archives = consecutive_zips(source_);
      if (archives.size() < 2) throw;
      file_.container = fmt::format("{} zip archives in a row", archives.size());
      contents_.scan_series(archives);
      return;
    }
    file_.container = formats::container_name(container);
    switch (container) {
      case Container::npz:
      case Container::torch_zip:
        contents_.scan_members(container);
        // The pickles alone determine the rating of a PyTorch archive, whether or not it makes tensors.
        if (options_ != nullptr) tensors();
        break;
      case Container::torchscript:
        contents_.scan_members(container);
        problem("a TorchScript archive: it contains code, which is not inspected");
        break;
      case Container::other_zip:
        contents_.scan_members(container);
        if (!file_.has_pickle && facts_.problems.empty() && options_ != nullptr)
          problem("a zip archive, but not one of PyTorch or NumPy");
        break;
      case Container::npy:
        if (is_rated()) contents_.look_at_array(*source_, "");
        if (options_ != nullptr) tensors();
        break;
      case Container::atb_bin:
        tensors(true);
        break;
      case Container::onnx:
        if (is_rated()) {
          if (const std::string surplus = onnx_surplus(*source_); !surplus.empty())
            file_.contents.push_back({"an ONNX model with " + surplus, "", Rating::unknown});
        }
        tensors();
        pickles_.look_for_second_face();
        break;
      case Container::mindspore:
        if (is_sentencepiece(*source_)) {
          file_.container = "SentencePiece model";
          break;
        }
        [[fallthrough]];
      case Container::safetensors:
      case Container::gguf:
      case Container::flax:
      case Container::adump:
        tensors(container == Container::adump || container == Container::mindspore);
        pickles_.look_for_second_face();
        break;
      case Container::torch_legacy:
      case Container::unknown:
        stream_of_pickles(container == Container::torch_legacy);
        break;
    }
    const bool is_zip = container == Container::npz || container == Container::torch_zip ||
                        container == Container::torchscript || container == Container::other_zip;
    if (!is_zip) contents_.look_for_archives(source_);
    if (is_rated()) look_for_other_readers(container);
    pickles_.tell_what_was_left_out();
  }

  void problem(const std::string& message) {
    facts_.problems.push_back(without_path(message, source_->name()));
  }

 private:
  bool is_rated() const { return options_ == nullptr || options_->rate; }

  /// Looks for readers that search other places than the first bytes, and for those that judge by the name.
  void look_for_other_readers(Container container) {
    constexpr std::string_view kHdf5 = "\x89HDF\r\n\x1a\n";
    for (std::uint64_t at = 512; at + kHdf5.size() <= source_->size(); at *= 2) {
      if (read_text(*source_, at, kHdf5.size()) == kHdf5)
        file_.contents.push_back({"it is also an HDF5 file", "", Rating::unknown});
    }
    const bool message = container == Container::onnx || container == Container::mindspore;
    if (message && is_named(source_->name(), {".pb", ".pbtxt", ".meta"}))
      file_.contents.push_back({"a model of TensorFlow by its name", "", Rating::unknown});
  }

  // Any file may be a pickle, because protocols 0 and 1 have no magic. A legacy PyTorch file is a pickle,
  // too.
  void stream_of_pickles(bool announced) {
    std::unique_ptr<formats::TorchTensors> tensors;
    std::string reason;
    try {
      tensors = std::make_unique<formats::TorchTensors>(source_);
    } catch (const FormatError& error) {
      reason = error.what();
    }
    if (tensors != nullptr) {
      file_.container = formats::container_name(Container::torch_legacy);
      // The tensor reader read the file to its last byte; everything after the pickles is storages.
      const auto chain = pickles_.scan_chain(*source_, 0, "", kLegacyPickles);
      if (!chain.failure.empty()) problem(chain.failure);
      describe_root(tensors->pickle());
      list(*tensors);
      return;
    }
    if (!announced && is_text(*source_) && !formats::scan_pickle(*source_, 0).failure.empty()) {
      file_.container = "text";
      if (pickles_.scan_lines(*source_, "")) file_.container = "text with a pickle in it";
      return not_tensors();
    }
    const auto chain = pickles_.scan_chain(*source_, 0, "");
    if (!chain.is_pickle && !announced) {
      file_.container = "unknown";
      std::erase_if(file_.globals,
                    [](const GlobalFacts& global) { return global.rating != Rating::dangerous; });
      return not_tensors();
    }
    file_.container = "pickle";
    file_.has_pickle = true;
    // A chain that is readable to its end is an inspected pickle, even if it holds no tensors. After a
    // failure the rest of the file is unknown, so the file must not pass as clean.
    if (!chain.failure.empty()) problem(chain.failure);
    if (!chain.failure.empty() && announced && reason != chain.failure) problem(reason);
  }

  void not_tensors() {
    if (is_rated()) return contents_.look_at_other(*source_, source_->name(), "");
    const std::string format = formats::foreign_format(*source_);
    if (!format.empty()) file_.container = format;
    problem(format.empty() ? "not a file type that msprobe recognizes"
                           : formats::foreign_reason(*source_, format));
  }

  void tensors(bool is_weakly_marked = false) {
    std::unique_ptr<formats::TensorSet> set;
    try {
      set = formats::open_tensors(source_);
    } catch (const FormatError& error) {
      // The first bytes of these formats are too common to be sure of the format.
      if (is_rated() && is_weakly_marked) return contents_.look_at_other(*source_, source_->name(), "");
      problem(error.what());
      if (first_bytes(*source_, 2) == "\x93N" && !is_rated()) pickles_.scan_object_array(*source_, "");
      return;
    }
    if (const auto* torch = dynamic_cast<const formats::TorchTensors*>(set.get()))
      describe_root(torch->pickle());
    if (const auto* safe = dynamic_cast<const formats::SafetensorsFile*>(set.get())) {
      file_.metadata = safe->metadata();
      contents_.look_at_metadata(file_.metadata);
    }
    if (const auto* gguf = dynamic_cast<const formats::GgufFile*>(set.get())) {
      file_.metadata = gguf->metadata();
      if (is_rated() && !gguf->is_gapless())
        file_.contents.push_back({"bytes that belong to no tensor", "", Rating::unknown});
      for (const auto& [key, text] : gguf->texts()) contents_.look_at_text(*text, key);
    }
    list(*set);
  }

  void list(const formats::TensorSet& set) {
    if (options_ == nullptr) return;
    file_.single = set.size() == 1 && set.name(0).empty();
    const auto* torch = dynamic_cast<const formats::TorchTensors*>(&set);
    file_.tensors.reserve(set.size());
    for (std::size_t i = 0; i < set.size(); ++i) {
      check_interrupt();
      TensorFacts& tensor = file_.tensors.emplace_back();
      tensor.name = set.name(i);
      try {
        describe(set.tensor(i), file_.single || options_->all_statistics, tensor);
        if (const formats::TorchShard* shard = torch == nullptr ? nullptr : torch->shard(i)) {
          tensor.whole = shard->whole;
          tensor.begin = shard->offset;
        }
        if (const auto* gguf = dynamic_cast<const formats::GgufFile*>(&set)) {
          if (set.half_step(i)) tensor.dtype = gguf->type_name(i);
          tensor.bytes = gguf->bytes(i);
        }
      } catch (const FormatError& error) {
        tensor.problem = without_path(error.what(), source_->name());
        describe_unreadable(set, i, tensor);
      }
    }
  }

  // Fills in what is known about a tensor whose elements cannot be read.
  void describe_unreadable(const formats::TensorSet& set, std::size_t index, TensorFacts& tensor) {
    if (const auto* safe = dynamic_cast<const formats::SafetensorsFile*>(&set)) {
      tensor.dtype = safe->dtype_name(index);
      tensor.shape = safe->shape(index);
    }
    if (const auto* gguf = dynamic_cast<const formats::GgufFile*>(&set)) {
      tensor.dtype = gguf->type_name(index);
      tensor.shape = gguf->shape(index);
    }
    const auto* npz = dynamic_cast<const formats::NpzFile*>(&set);
    if (npz != nullptr && !is_rated()) {
      contents_.scan_object_member(npz->zip(), npz->entry(index), set.name(index));
    }
  }

  void describe(const StoredTensor& stored, bool in_full, TensorFacts& tensor) const {
    tensor.dtype = tensor::info(stored.dtype).name;
    tensor.shape = stored.shape;
    tensor.strides = stored.strides;
    tensor.offset = stored.offset;
    tensor.elements = stored.numel();
    tensor.bytes = static_cast<std::uint64_t>(tensor.elements) * tensor::info(stored.dtype).size;
    tensor.big_endian = stored.big_endian && tensor::info(stored.dtype).size > 1;
    tensor.conjugate = stored.conjugate;
    tensor.negative = stored.negative;
    if (!in_full) return;
    tensor.statistics = std::make_shared<const tensor::Statistics>(formats::statistics_of(stored));
    tensor.range = formats::integer_range(stored.dtype, *tensor.statistics);
    tensor.first = formats::first_elements(stored, options_->first);
  }

  void describe_root(const Pickle& pickle) {
    const PickleRef root = pickle.root();
    file_.holds = formats::kind_name(pickle.kind(root));
    if (pickle.kind(root) != PickleKind::dict) return;
    const auto pairs = pickle.pairs(root);
    file_.holds = fmt::format("a dict of {}", pairs.size() / 2);
    for (std::size_t i = 0; i + 1 < pairs.size() && file_.values.size() < kMostValues; i += 2) {
      const std::string value = value_text(pickle, pairs[i + 1]);
      if (pickle.kind(pairs[i]) == PickleKind::text && !value.empty()) {
        file_.values.emplace_back(pickle.text(pairs[i]), value);
      }
    }
  }

  /// The value as text; empty for kinds that are reported elsewhere.
  static std::string value_text(const Pickle& pickle, PickleRef ref) {
    switch (pickle.kind(ref)) {
      case PickleKind::none:
        return "None";
      case PickleKind::boolean:
        return pickle.boolean(ref) ? "True" : "False";
      case PickleKind::integer:
        return std::to_string(pickle.integer(ref));
      case PickleKind::real:
        return python_repr(pickle.real(ref));
      case PickleKind::text:
        return python_repr(pickle.text(ref).substr(0, kMostText));
      case PickleKind::dict:
        return fmt::format("a dict of {}", pickle.pairs(ref).size() / 2);
      case PickleKind::list:
      case PickleKind::tuple:
      case PickleKind::set:
        return fmt::format("{} of {}", formats::kind_name(pickle.kind(ref)), pickle.items(ref).size());
      default:
        return {};
    }
  }

  Source source_;
  const Options* options_;
  PathFacts& facts_;
  FileFacts& file_;
  PickleFinder pickles_;
  ContentScanner contents_;
};

void inspect_source(const Source& source, const Options* options, PathFacts& facts) {
  FileInspector inspector(source, options, facts);
  try {
    inspector.run();
  } catch (const FormatError& error) {
    inspector.problem(error.what());
  }
}

}  // namespace

Rating FileFacts::rating() const {
  Rating worst = Rating::ok;
  for (const GlobalFacts& global : globals) worst = std::max(worst, global.rating);
  for (const ContentFacts& content : contents) worst = std::max(worst, content.rating);
  return worst;
}

void inspect_file(const std::string& path, const Options& options, PathFacts& facts) {
  inspect_source(open_file(path), &options, facts);
}

void rate_file(const std::shared_ptr<const ByteSource>& source, PathFacts& facts) {
  inspect_source(source, nullptr, facts);
}

}  // namespace msprobe::inspect
