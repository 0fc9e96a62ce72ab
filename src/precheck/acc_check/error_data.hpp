// SPDX-License-Identifier: Apache-2.0
// The tensors of a call that is not right, for those who want to look at it alone.
#pragma once

#include <string>
#include <string_view>

#include "precheck/calls/request.hpp"
#include "precheck/judgement/output.hpp"
#include "precheck/runner/shared_file.hpp"

namespace msprobe::precheck {

/// `{call}.{forward.input|backward.input}.{i}.pt`
std::string input_file_name(const std::string& call, const RequestTensor& input);

/// `FOLDER/` and these names, of the tensors of a request. IoError.
void save_inputs(const std::string& folder, const std::string& call, const CallRequest& request,
                 const SharedFile& payload);

/// `FOLDER/{call}.{part}.{i}.pt`, i counting all values. IoError.
void save_outputs(const std::string& folder, const std::string& call, std::string_view part,
                  const Output& output);

}  // namespace msprobe::precheck
