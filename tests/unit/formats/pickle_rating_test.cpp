// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_rating.hpp"

#include <doctest/doctest.h>

#include <string_view>
#include <utility>

namespace msprobe::formats {
namespace {

using Name = std::pair<std::string_view, std::string_view>;

}  // namespace

TEST_CASE("what runs code is dangerous, by whatever road") {
  for (const auto& [module, name] : {
           Name{"os", "system"},
           Name{"posix", "system"},
           Name{"nt", "system"},
           Name{"subprocess", "Popen"},
           Name{"sys", "modules"},
           Name{"socket", "socket"},
           Name{"shutil", "rmtree"},
           Name{"runpy", "_run_code"},
           Name{"builtins", "eval"},
           Name{"__builtin__", "eval"},
           Name{"builtins", "exec"},
           Name{"builtins", "getattr"},
           Name{"builtins", "__import__"},
           Name{"importlib", "import_module"},
           Name{"importlib.util", "spec_from_file_location"},
           Name{"os.path", "join"},
           Name{"pty", "spawn"},
           Name{"marshal", "loads"},
           Name{"ctypes", "CDLL"},
           Name{"operator", "methodcaller"},
           Name{"numpy", "f2py.crackfortran.myeval"},
           Name{"functools", "partial"},
           Name{"types", "FunctionType"},
           Name{"_io", "open"},
           Name{"torch", "load"},
           Name{"torch.hub", "load"},
           Name{"torch.storage", "_load_from_bytes"},
           Name{"torch.jit.unsupported_tensor_ops", "execWrapper"},
           Name{"numpy.testing._private.utils", "runstring"},
           Name{"torch", "serialization.os.system"},
           Name{"collections", "OrderedDict.__init__"},
           Name{"numpy", "__builtins__"},
       }) {
    CAPTURE(module);
    CAPTURE(name);
    CHECK(rate_global(module, name) == Rating::dangerous);
  }
}

TEST_CASE("what tensors, arrays and containers are made of is ok") {
  for (const auto& [module, name] : {
           Name{"torch._utils", "_rebuild_tensor_v2"},
           Name{"torch._utils", "_rebuild_parameter"},
           Name{"torch", "FloatStorage"},
           Name{"torch.cuda", "HalfStorage"},
           Name{"torch.storage", "UntypedStorage"},
           Name{"torch", "bfloat16"},
           Name{"torch", "float8_e4m3fn"},
           Name{"torch", "Size"},
           Name{"torch_npu.utils.storage", "_rebuild_npu_tensor"},
           Name{"collections", "OrderedDict"},
           Name{"__builtin__", "set"},
           Name{"numpy", "dtype"},
           Name{"numpy._core.multiarray", "_reconstruct"},
           Name{"argparse", "Namespace"},
       }) {
    CAPTURE(module);
    CAPTURE(name);
    CHECK(rate_global(module, name) == Rating::ok);
  }
}

TEST_CASE("everything else is unknown, also where it looks like a friend") {
  for (const auto& [module, name] : {
           Name{"torch.nn.modules.linear", "Linear"},
           Name{"megatron.core.enums", "ModelType"},
           Name{"osmosis", "system"},
           Name{"system", "os"},
           Name{"torch", "Float"},
           Name{"torchx", "FloatStorage"},
           Name{"evil", "_rebuild_tensor_v2"},
           Name{"torch._utils", "_rebuild_tensor_v2.func"},
           Name{"", ""},
           Name{"", "os"},
       }) {
    CAPTURE(module);
    CAPTURE(name);
    CHECK(rate_global(module, name) != Rating::ok);
  }
  CHECK(rate_global("osmosis", "system") == Rating::unknown);
  CHECK(rate_global("torch.nn.modules.linear", "Linear") == Rating::unknown);
}

}  // namespace msprobe::formats
