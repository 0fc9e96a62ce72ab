// SPDX-License-Identifier: Apache-2.0
// A distributed checkpoint as ranks save it, `.metadata` and their files, one fact or more of which is wrong:
// the place of a chunk in its tensor and in its file, its type, its shape, the contents of the file. The
// choices are the family (PyTorch, Megatron with stacked layers and experts), the form of the files (PyTorch,
// safetensors), the number of ranks, of tensors, and of axes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "fuzz_checkpoint.hpp"
#include "fuzz_facts.hpp"
#include "fuzz_pickle_text.hpp"
#include "fuzz_target.hpp"
#include "support/json_writer.hpp"
#include "tensor/dtype.hpp"

namespace msprobe {
namespace {

using checkpoint::Shape;
using pickles::Values;

constexpr std::size_t kFolderChoices = 5;
constexpr std::size_t kFolderFacts = 256;

Values integers(Facts& facts, const Shape& shape) {
  Values values;
  const std::size_t axes = facts.count(shape.size());
  for (std::size_t i = 0; i < axes; ++i)
    values.push_back(pickles::integer(facts.number(i < shape.size() ? shape[i] : 1)));
  return values;
}

std::string zip_of(Facts& facts, const std::string& pickle, const std::string& storage) {
  return archive::build_zip({{.name = facts.text("archive/data.pkl"), .payload = pickle},
                             {.name = facts.text("archive/data/0"), .payload = facts.content(storage)},
                             {.name = "archive/version", .payload = "3\n"}});
}

/// A tensor as torch.save() writes it.
std::string torch_tensor(Facts& facts, const Shape& shape, const std::string& bytes) {
  Shape strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = step;
    step *= shape[axis];
  }
  const std::string storage =
      pickles::tuple({pickles::text("storage"), pickles::global("torch", facts.text("FloatStorage")),
                      pickles::text(facts.text("0")), pickles::text("cpu"),
                      pickles::integer(facts.number(step))}) +
      "Q";
  const std::string ordered = pickles::call(pickles::global("collections", "OrderedDict"), {});
  return zip_of(facts,
                pickles::whole(pickles::call(
                    pickles::global("torch._utils", "_rebuild_tensor_v2"),
                    {storage, pickles::integer(facts.number(0)), pickles::tuple(integers(facts, shape)),
                     pickles::tuple(integers(facts, strides)), pickles::boolean(false), ordered})),
                bytes);
}

/// A tensor whose elements are 0, 1, 2, ... and that ranks hold parts of along their axis.
struct Tensor {
  std::string name;
  Shape shape;
  std::size_t axis = 0;
};

struct Box {
  Shape offset;
  Shape size;
};

std::vector<Box> boxes_of(const Tensor& tensor, std::size_t ranks) {
  std::vector<Box> boxes;
  const std::int64_t length = tensor.shape[tensor.axis];
  const std::int64_t each =
      (length + static_cast<std::int64_t>(ranks) - 1) / static_cast<std::int64_t>(ranks);
  for (std::int64_t begin = 0; begin < length; begin += each) {
    Box box{Shape(tensor.shape.size(), 0), tensor.shape};
    box.offset[tensor.axis] = begin;
    box.size[tensor.axis] = std::min(each, length - begin);
    boxes.push_back(std::move(box));
  }
  return boxes;
}

std::string elements_of(const Tensor& tensor, const Box& box) {
  std::string bytes;
  Shape at(box.size.size(), 0);
  for (bool more = true; more;) {
    std::int64_t number = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis)
      number = number * tensor.shape[axis] + box.offset[axis] + at[axis];
    const auto value = static_cast<float>(number);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    more = false;
    for (std::size_t axis = at.size(); axis-- > 0 && !more;) {
      more = ++at[axis] < box.size[axis];
      if (!more) at[axis] = 0;
    }
  }
  return bytes;
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

class Folder {
 public:
  Folder(Facts& facts, const std::string& path) : facts_(facts), path_(path) {
    megatron_ = facts.choose(2) == 1;
    safetensors_ = facts.choose(2) == 1;
    ranks_ = 1 + facts.choose(3);
    const std::size_t count = 1 + facts.choose(3);
    const std::size_t axes = 1 + facts.choose(3);
    for (std::size_t i = 0; i < count; ++i) {
      Tensor tensor{"layer." + std::to_string(i) + ".weight", {}, i % axes};
      for (std::size_t axis = 0; axis < axes; ++axis)
        tensor.shape.push_back(static_cast<std::int64_t>(2 + (i + axis) % 3));
      if (megatron_ && i % 2 == 0)
        tensor.name = "model.decoder.layers.mlp.linear_fc" + std::to_string(i + 1) + ".weight";
      if (megatron_ && i % 2 == 1) tensor.name = "model.decoder.layers.mlp.experts.experts.linear_fc2.weight";
      tensors.push_back(std::move(tensor));
    }
  }

  void write() {
    Values described;
    Values places;
    std::vector<std::vector<std::pair<std::string, std::pair<Box, std::string>>>> stored(ranks_);
    std::vector<std::string> files(ranks_);
    for (const Tensor& tensor : tensors) {
      Values chunks;
      const std::vector<Box> boxes = boxes_of(tensor, ranks_);
      const std::size_t told = facts_.count(boxes.size());
      for (std::size_t i = 0; i < told; ++i) {
        const std::size_t rank = std::min(i, boxes.size() - 1);
        const Box& box = boxes[rank];
        chunks.push_back(members({{"offsets", pickles::tuple(integers(facts_, box.offset))},
                                  {"sizes", pickles::tuple(integers(facts_, box.size))}}));
        const std::string bytes = elements_of(tensor, box);
        const std::size_t begin = files[rank].size();
        if (!safetensors_) files[rank] += torch_tensor(facts_, box.size, bytes);
        stored[rank].push_back({tensor.name, {box, bytes}});
        const std::string index = members({{"fqn", pickles::text(facts_.text(tensor.name))},
                                           {"offset", pickles::tuple(integers(facts_, box.offset))}});
        const std::string file = "__" + std::to_string(rank) + "_0.distcp";
        places.push_back(index);
        places.push_back(members(
            {{"relative_path", pickles::text(facts_.text(file))},
             {"offset", pickles::integer(facts_.number(static_cast<std::int64_t>(begin)))},
             {"length",
              pickles::integer(facts_.number(static_cast<std::int64_t>(files[rank].size() - begin)))}}));
      }
      described.push_back(pickles::text(facts_.text(tensor.name)));
      described.push_back(members({{"properties", properties()},
                                   {"size", pickles::tuple(integers(facts_, tensor.shape))},
                                   {"chunks", pickles::list(chunks)}}));
    }
    const std::string metadata = pickles::whole(members(
        {{"state_dict_metadata", pickles::dict(described)}, {"storage_data", pickles::dict(places)}}));
    write_file(path_ + "/.metadata", facts_.content(metadata));
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      if (safetensors_) files[rank] = safetensors(stored[rank]);
      write_file(path_ + "/__" + std::to_string(rank) + "_0.distcp", facts_.content(files[rank]));
    }
    if (!megatron_) return;
    const std::string arguments = pickles::object(
        pickles::global("argparse", "Namespace"),
        pickles::dict({pickles::text("num_attention_heads"), pickles::integer(facts_.number(4)),
                       pickles::text("num_query_groups"), pickles::integer(facts_.number(2))}));
    write_file(path_ + "/common.pt",
               facts_.content(
                   zip_of(facts_, pickles::whole(pickles::dict({pickles::text("args"), arguments})), "")));
  }

  std::vector<Tensor> tensors;

 private:
  std::string members(const std::vector<std::pair<std::string, std::string>>& named) {
    Values values;
    for (const auto& [name, value] : named) {
      values.push_back(pickles::text(facts_.text(name)));
      values.push_back(value);
    }
    return pickles::object(pickles::global("torch.distributed.checkpoint.metadata", "Metadata"),
                           pickles::dict(values));
  }
  std::string properties() {
    return pickles::object(
        pickles::global("torch.distributed.checkpoint.metadata", "TensorProperties"),
        pickles::tuple({pickles::global("torch", facts_.text("float32")), pickles::none()}));
  }
  std::string safetensors(const std::vector<std::pair<std::string, std::pair<Box, std::string>>>& stored) {
    JsonWriter header;
    std::string data;
    header.open_object();
    for (const auto& [name, part] : stored) {
      header.open_object(facts_.text(name));
      header.member("dtype", facts_.text("F32"));
      header.open_list("shape");
      for (const std::int64_t length : part.first.size) header.value(facts_.number(length));
      header.close();
      header.open_list("data_offsets");
      header.value(facts_.number(static_cast<std::int64_t>(data.size())));
      data += part.second;
      header.value(facts_.number(static_cast<std::int64_t>(data.size())));
      header.close();
      header.close();
    }
    header.close();
    const std::string text = header.take();
    const auto size = static_cast<std::uint64_t>(facts_.number(static_cast<std::int64_t>(text.size())));
    return archive::Bytes().u64(size).text(text).text(facts_.content(data)).str();
  }

  Facts& facts_;
  std::string path_;
  bool megatron_ = false;
  bool safetensors_ = false;
  std::size_t ranks_ = 1;
};

/// Each entry holds numbers that follow each other, and all of them together those of the tensors.
void check_right(const std::string& path, const std::vector<Tensor>& tensors) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : tensors) {
    std::int64_t numel = 1;
    for (const std::int64_t length : tensor.shape) numel *= length;
    sum += numel * (numel + 1) / 2;
  }
  for (const checkpoint::CheckpointEntry& entry : checkpoint::load(path, {}).entries) {
    if (!entry.problem.empty()) __builtin_trap();
    checkpoint::ParameterReader reader(entry.parameter);
    std::vector<float> values(static_cast<std::size_t>(reader.remaining()));
    reader.read(std::as_writable_bytes(std::span(values)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != values[0] + static_cast<float>(i)) __builtin_trap();
      sum -= static_cast<std::int64_t>(values[i]) + 1;
    }
  }
  if (sum != 0) __builtin_trap();
}

}  // namespace

FUZZ_TARGET(dcp_folder)(const std::uint8_t* data, std::size_t size) {
  static const FuzzFolder place;
  place.clear();
  Facts facts(data, size, kFolderChoices, kFolderFacts);
  Folder folder(facts, place.path());
  folder.write();
  if (facts.all_right()) {
    check_right(place.path(), folder.tensors);
  } else {
    read_checkpoint(place.path());
  }
}

}  // namespace msprobe
