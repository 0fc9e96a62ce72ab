/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor's C interface as a C99 program sees it, through the shared library. The argument is a folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "msprobe/monitor.h"

/* The folder of the rank: a JSON text without characters that need an escape. */
static void read_rows(msprobe_monitor* monitor, const char* name, char* rows, size_t size) {
  char path[4096];
  const char* folder = NULL;
  FILE* file = NULL;
  CHECK(msprobe_monitor_setting(monitor, "folder", &folder) == MSPROBE_OK);
  snprintf(path, sizeof path, "%.*s/%s", (int)strlen(folder) - 2, folder + 1, name);
  file = fopen(path, "rb");
  CHECK(file != NULL);
  rows[fread(rows, 1, size - 1, file)] = '\0';
  fclose(file);
}

int main(int argc, char** argv) {
  const float data[2] = {3.0F, -4.0F};
  const int64_t length = 2;
  char rows[4096];
  msprobe_monitor* monitor = NULL;
  msprobe_monitor_options options;
  msprobe_series series;
  msprobe_tensor tensor;
  msprobe_step_result result;
  uint32_t id = 7;
  CHECK(argc == 2);

  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.output_dir = argv[1];
  CHECK(msprobe_monitor_open(NULL, "{\"ops\": 1}", &options, &monitor) == MSPROBE_INVALID);
  CHECK(strcmp(msprobe_last_error(), "TypeError: ops should be a list") == 0);
  CHECK(msprobe_monitor_open(NULL, "{\"ops\": [\"norm\", \"max\"]}", &options, &monitor) == MSPROBE_OK);

  memset(&series, 0, sizeof series);
  series.struct_size = sizeof series;
  series.quantity = "grad_reduced";
  series.name = "layer.weight";
  series.micro_step = -1;
  CHECK(msprobe_monitor_series(monitor, &series, &id) == MSPROBE_OK && id == 0);

  memset(&tensor, 0, sizeof tensor);
  tensor.struct_size = sizeof tensor;
  tensor.data = data;
  tensor.shape = &length;
  tensor.ndim = 1;
  tensor.dtype = MSPROBE_FLOAT32;
  CHECK(*msprobe_monitor_collecting(monitor) != 0);
  CHECK(msprobe_monitor_observe(monitor, id, &tensor) == MSPROBE_OK);
  tensor.data = NULL;
  CHECK(msprobe_monitor_observe(monitor, id, &tensor) == MSPROBE_INVALID);

  memset(&result, 0, sizeof result);
  result.struct_size = sizeof result;
  CHECK(msprobe_monitor_step_end(monitor, &result) == MSPROBE_OK);
  CHECK(result.written == 1 && result.alerts == 0 && result.finished == 0);
  read_rows(monitor, "grad_reduced_0-0.csv", rows, sizeof rows);
  CHECK(strcmp(rows, "vpp_stage,name,step,norm,max,shape,dtype\n0,layer.weight,0,5.0,3.0,[2],torch.float32\n") == 0);
  CHECK(msprobe_monitor_close(monitor) == MSPROBE_OK);
  CHECK(msprobe_monitor_close(NULL) == MSPROBE_OK);
  return 0;
}
