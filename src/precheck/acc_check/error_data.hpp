// SPDX-License-Identifier: Apache-2.0
// The tensors of a call that is not right, so that a user can look at it alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "precheck/calls/request.hpp"
#include "precheck/judgement/output.hpp"
#include "precheck/runner/shared_file.hpp"

namespace msprobe::precheck {

/// Reads bytes of a tensor from an offset on; false if the tensor has no bytes.
using TensorBytes = std::function<bool(std::uint64_t offset, std::span<std::byte> out)>;

/// Saves a tensor as a `.pt` file; does nothing if PyTorch has no such type. IoError.
void save_tensor(const std::string& path, tensor::DType dtype, const std::vector<std::uint64_t>& shape,
                 std::uint64_t size, const TensorBytes& fill);

/// `{call}.{forward.input|backward.input}.{i}.pt`
std::string input_file_name(const std::string& call, const RequestTensor& input);

/// Saves the tensors of a request in `FOLDER/` under these names. IoError.
void save_inputs(const std::string& folder, const std::string& call, const CallRequest& request,
                 const SharedFile& payload);

/// Saves outputs as `FOLDER/{call}.{part}.{i}.pt`, where i counts all values. IoError.
void save_outputs(const std::string& folder, const std::string& call, std::string_view part,
                  const CallOutput& output);

}  // namespace msprobe::precheck
