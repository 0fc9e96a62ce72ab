/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface as a C99 program sees it, through the shared library. The argument is a folder for its files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static char* read_file(const char* folder, const char* name) {
  static char text[65536];
  char path[4096];
  size_t size = 0;
  FILE* file = NULL;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  file = fopen(path, "rb");
  CHECK(file != NULL);
  size = fread(text, 1, sizeof text - 1, file);
  text[size] = '\0';
  fclose(file);
  return text;
}

static msprobe_tensor vector(const float* data, const int64_t* length) {
  msprobe_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.struct_size = sizeof tensor;
  tensor.data = data;
  tensor.shape = length;
  tensor.ndim = 1;
  tensor.dtype = MSPROBE_FLOAT32;
  return tensor;
}

static void test_kernels(const char* folder) {
  const float data[3] = {1.0F, -2.0F, 3.5F};
  const int64_t length = 3;
  msprobe_tensor tensor = vector(data, &length);
  msprobe_statistics statistics;
  uint32_t crc = 0;
  uint64_t folded = 0;
  char path[4096];

  memset(&statistics, 0, sizeof statistics);
  statistics.struct_size = sizeof statistics;
  CHECK(msprobe_compute_statistics(&tensor, &statistics) == MSPROBE_OK);
  CHECK(statistics.max == 3.5 && statistics.min == -2.0 && statistics.count == 3 && statistics.nan == 0);
  CHECK(fabs(statistics.mean - 2.5 / 3) < 1e-15 && fabs(statistics.norm - sqrt(17.25)) < 1e-15);
  CHECK(msprobe_compute_crc32(&tensor, &crc) == MSPROBE_OK && crc == 0x966c0281U);
  CHECK(msprobe_compute_xor(&tensor, &folded) == MSPROBE_OK && folded == 0xc00000007fe00000U);

  /* A caller of an older version knows a shorter structure. */
  memset(&statistics, 0, sizeof statistics);
  statistics.struct_size = offsetof(msprobe_statistics, mean);
  CHECK(msprobe_compute_statistics(&tensor, &statistics) == MSPROBE_OK);
  CHECK(statistics.max == 3.5 && statistics.mean == 0.0);

  tensor.data = NULL;
  CHECK(msprobe_compute_crc32(&tensor, &crc) == MSPROBE_INVALID);
  CHECK(strlen(msprobe_last_error()) > 0);
  tensor = vector(data, &length);
  CHECK(msprobe_compute_crc32(&tensor, NULL) == MSPROBE_INVALID);
  tensor.struct_size = 0;
  CHECK(msprobe_compute_crc32(&tensor, &crc) == MSPROBE_INVALID);
  CHECK(msprobe_compute_crc32(NULL, &crc) == MSPROBE_INVALID);

  tensor = vector(data, &length);
  snprintf(path, sizeof path, "%s/t.npy", folder);
  CHECK(msprobe_write_tensor(path, &tensor) == MSPROBE_OK);
  CHECK(memcmp(read_file(folder, "t.npy") + 1, "NUMPY", 5) == 0);
  snprintf(path, sizeof path, "%s/t.txt", folder);
  CHECK(msprobe_write_tensor(path, &tensor) == MSPROBE_FAILED);
}

static void test_dtypes(void) {
  msprobe_dtype_info info;
  uint32_t dtype;
  CHECK(msprobe_get_dtype(MSPROBE_BFLOAT16, &info) == MSPROBE_OK);
  CHECK(strcmp(info.name, "bfloat16") == 0 && strcmp(info.numpy, "") == 0 && info.size == 2);
  CHECK(msprobe_get_dtype(MSPROBE_COMPLEX128, &info) == MSPROBE_OK);
  CHECK(strcmp(info.name, "complex128") == 0 && strcmp(info.numpy, "<c16") == 0 && info.size == 16);
  for (dtype = 0; msprobe_get_dtype(dtype, &info) == MSPROBE_OK; ++dtype) CHECK(info.size > 0 && info.name[0] != 0);
  CHECK(dtype == MSPROBE_QINT32 + 1);
  CHECK(msprobe_get_dtype(MSPROBE_DTYPE_OTHER, &info) == MSPROBE_SKIP);
  CHECK(msprobe_get_dtype(MSPROBE_FLOAT32, NULL) == MSPROBE_INVALID);
}

static void test_dlpack(void) {
  /* As dlpack.h has it. */
  struct {
    void* data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
  } from;
  float data[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[2] = {2, 2};
  int64_t strides[2] = {1, 2};
  msprobe_tensor tensor;
  msprobe_statistics statistics;
  memset(&from, 0, sizeof from);
  from.data = data;
  from.device_type = 1;
  from.ndim = 2;
  from.code = 2;
  from.bits = 32;
  from.lanes = 1;
  from.shape = shape;
  from.strides = strides;
  from.byte_offset = 4;
  memset(&tensor, 0, sizeof tensor);
  tensor.struct_size = sizeof tensor;
  memset(&statistics, 0, sizeof statistics);
  statistics.struct_size = sizeof statistics;
  CHECK(msprobe_tensor_from_dlpack(&from, &tensor) == MSPROBE_OK);
  CHECK(tensor.struct_size == sizeof tensor && tensor.dtype == MSPROBE_FLOAT32);
  CHECK(msprobe_compute_statistics(&tensor, &statistics) == MSPROBE_OK);
  CHECK(statistics.max == 4.0 && statistics.min == 1.0);
  from.device_type = 2;
  CHECK(msprobe_tensor_from_dlpack(&from, &tensor) == MSPROBE_INVALID);
  from.device_type = 1;
  from.bits = 24;
  CHECK(msprobe_tensor_from_dlpack(&from, &tensor) == MSPROBE_INVALID);
}

static void test_configurations(void) {
  msprobe_session* session = (msprobe_session*)1;
  CHECK(msprobe_session_open(NULL, "{\"level\": \"L7\"}", NULL, &session) == MSPROBE_INVALID);
  CHECK(session == NULL);
  CHECK(msprobe_session_open(NULL, "{\"dump_path\": \"x\", \"level\": \"L1\", \"statistics\": {\"scope\": [\"a\", \"b\"]}}",
                             NULL, &session) == MSPROBE_INVALID_SCOPE);
  CHECK(msprobe_session_open("/nowhere/config.json", NULL, NULL, &session) == MSPROBE_INVALID_FILE);
  CHECK(msprobe_session_open(NULL, NULL, NULL, NULL) == MSPROBE_INVALID);
  CHECK(msprobe_session_close(NULL) == MSPROBE_OK);
}

static void test_recording(const char* folder) {
  msprobe_overrides overrides;
  msprobe_session* session = NULL;
  msprobe_decision decision = MSPROBE_NOT_NOW;
  msprobe_builder* builder = NULL;
  msprobe_event event, inner;
  msprobe_info info;
  const volatile int* running = NULL;
  const float data[2] = {3, 4};
  const int64_t length = 2;
  msprobe_tensor tensor = vector(data, &length);
  uint32_t name = 0;
  const char* text = NULL;

  memset(&overrides, 0, sizeof overrides);
  overrides.struct_size = sizeof overrides;
  overrides.dump_path = folder;
  overrides.level = "mix";
  overrides.framework = "mindspore";
  overrides.file_suffix = "npy";
  CHECK(msprobe_session_open(NULL, "{\"task\": \"tensor\", \"level\": \"L0\", \"risk_level\": \"ALL\"}", &overrides,
                             &session) == MSPROBE_OK);
  running = msprobe_session_running(session);
  CHECK(*running == 0);
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  CHECK(msprobe_session_info(session, &info) == MSPROBE_OK);
  CHECK(info.level == MSPROBE_LEVEL_MIX && info.task == MSPROBE_TASK_TENSOR && info.wants_bytes && info.rank == -1);
  CHECK(strcmp(msprobe_session_setting(session, "level"), "\"mix\"") == 0);
  CHECK(strcmp(msprobe_session_setting(session, "no such key"), "null") == 0);
  CHECK(msprobe_set_rank(session, 2) == MSPROBE_OK);
  CHECK(msprobe_set_risk(session, "my_norm", "core") == MSPROBE_OK);
  CHECK(msprobe_set_risk(session, "my_norm", "high") == MSPROBE_INVALID);
  CHECK(msprobe_set_risk(session, NULL, "low") == MSPROBE_INVALID);
  CHECK(msprobe_intern("Functional.abs", &name) == MSPROBE_OK);
  CHECK(msprobe_enter(session, MSPROBE_KIND_API, name, &event) == MSPROBE_SKIP && event.wants == 0);
  CHECK(msprobe_leave(session, &event) == MSPROBE_SKIP);
  CHECK(msprobe_start(session, &decision, NULL) == MSPROBE_OK && decision == MSPROBE_RECORDING);
  CHECK(*running != 0);
  CHECK(msprobe_enter(session, MSPROBE_KIND_API, name, &event) == MSPROBE_OK);
  CHECK(msprobe_enter(session, MSPROBE_KIND_API, name, &inner) == MSPROBE_SKIP && inner.nested);
  CHECK(msprobe_leave(session, &inner) == MSPROBE_OK);
  CHECK(msprobe_section_begin(session, &event, MSPROBE_INPUT, &builder) == MSPROBE_OK);
  CHECK(msprobe_add_tensor(builder, NULL, &tensor, NULL) == MSPROBE_OK);
  CHECK(msprobe_open_list(builder, NULL) == MSPROBE_OK);
  CHECK(msprobe_add_bool(builder, NULL, "bool", 1) == MSPROBE_OK);
  CHECK(msprobe_add_double(builder, NULL, "float", HUGE_VAL) == MSPROBE_OK);
  CHECK(msprobe_add_text(builder, NULL, "str", "\xC3\xA9\n", 3) == MSPROBE_OK);
  CHECK(msprobe_close(builder) == MSPROBE_OK);
  CHECK(msprobe_add_null(builder, NULL) == MSPROBE_OK);
  CHECK(msprobe_builder_commit(builder) == MSPROBE_OK);
  CHECK(msprobe_section_begin(session, &event, MSPROBE_OUTPUT, &builder) == MSPROBE_OK);
  CHECK(msprobe_add_int(builder, NULL, "int", 1) == MSPROBE_OK);
  CHECK(msprobe_builder_abort(builder) == MSPROBE_OK);
  CHECK(msprobe_leave(session, &event) == MSPROBE_OK);
  CHECK(msprobe_stop(session) == MSPROBE_OK);
  text = read_file(folder, "step0/rank2/dump.json");
  CHECK(strstr(text, "\"framework\": \"mindspore\"") != NULL);
  CHECK(strstr(text, "\"mindspore.Tensor\"") != NULL && strstr(text, "\"Float32\"") != NULL);
  CHECK(strstr(text, "\"value\": Infinity") != NULL && strstr(text, "\\u00e9\\n") != NULL);
  CHECK(strstr(text, "\"data_name\": \"Functional.abs.0.forward.input.0.npy\"") != NULL);
  CHECK(strstr(text, "\"output\"") == NULL);
  CHECK(memcmp(read_file(folder, "step0/rank2/dump_tensor_data/Functional.abs.0.forward.input.0.npy") + 1, "NUMPY",
               5) == 0);
  CHECK(msprobe_step(session) == MSPROBE_OK);
  CHECK(msprobe_session_close(session) == MSPROBE_OK);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  CHECK(strlen(msprobe_version()) > 0);
  test_kernels(argv[1]);
  test_dtypes();
  test_dlpack();
  test_configurations();
  test_recording(argv[1]);
  return 0;
}
