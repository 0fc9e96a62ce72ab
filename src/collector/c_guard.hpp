// SPDX-License-Identifier: Apache-2.0
// Helpers for every function of the C interfaces: they let no exception out and keep the reason of a failure.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "collector/c_tensor.hpp"
#include "collector/config.hpp"
#include "collector/last_error.hpp"
#include "msprobe/collector.h"
#include "support/error.hpp"

namespace msprobe::collector {

inline msprobe_status failed(msprobe_status status, const char* text) noexcept {
  set_last_error(text);
  return status;
}

/// Turns every exception from `body` into a status. An Error becomes `error_status`.
template <typename Body>
msprobe_status guarded(msprobe_status error_status, Body body) noexcept {
  try {
    return body();
  } catch (const InvalidCall& error) {
    return failed(MSPROBE_INVALID, error.what());
  } catch (const ScopeError& error) {
    return failed(MSPROBE_INVALID_SCOPE, error.what());
  } catch (const IoError& error) {
    return failed(error_status == MSPROBE_INVALID ? MSPROBE_INVALID_FILE : MSPROBE_FAILED, error.what());
  } catch (const FormatError& error) {
    return failed(MSPROBE_INVALID, error.what());
  } catch (const std::out_of_range& error) {
    return failed(MSPROBE_INVALID, error.what());
  } catch (const std::bad_alloc&) {
    return failed(MSPROBE_FAILED, "not enough memory");
  } catch (const std::exception& error) {
    return failed(error_status, error.what());
  } catch (...) {
    return failed(MSPROBE_FAILED, "an unknown error");
  }
}

template <typename T>
T& needed(T* pointer, const char* what) {
  if (pointer == nullptr) throw InvalidCall(std::string(what) + " is missing");
  return *pointer;
}

/// The view of a tensor whose elements must be present.
inline TensorView filled_view(const msprobe_tensor& tensor) {
  const TensorView view = view_of(tensor);
  if (view.data == nullptr && view.count > 0) throw InvalidCall("a tensor has no values");
  return view;
}

}  // namespace msprobe::collector
