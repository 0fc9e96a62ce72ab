/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface of the training monitor: series of small numbers (norms, extrema, means, counts) of what a training
 * computes, a row a step in csv files or TensorBoard event files, with alerts while it runs.
 *
 * The rules of collector.h hold here, too: every function returns an msprobe_status, msprobe_last_error() says why, nothing
 * throws, aborts or prints, any thread may call, a child made by fork() gets MSPROBE_SKIP.
 *
 * One step: the hooks call observe functions while msprobe_monitor_collecting() points at something that is not 0; then
 * msprobe_monitor_step_end() judges the alerts and appends the rows to their files. The rows are there when it returns.
 */
#ifndef MSPROBE_MONITOR_H
#define MSPROBE_MONITOR_H

#include "msprobe/collector.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct msprobe_monitor msprobe_monitor;

/* Facts that only the program knows. */
typedef struct msprobe_monitor_options {
  size_t struct_size;
  int32_t layout;           /* 1: TrainerMon, 2: TrainerMonitorV2; 0 is 1 */
  int32_t rank;
  int32_t pp_stage;         /* of alerts: the place of the rank in its pipeline group */
  int32_t dynamic;          /* layout 1: nothing is collected until the file says dynamic_on */
  int32_t distributed;      /* append_output is for distributed runs only */
  const char* framework;    /* "pytorch" (default) or "mindspore" */
  const char* output_dir;   /* of layout 1; NULL: $MONITOR_OUTPUT_DIR, else ./monitor_output */
  const char* group_mates;  /* JSON list of ranks; NULL: [0] */
} msprobe_monitor_options;

/* Reads the configuration file (path), or its text (if path is NULL), or neither (all defaults). Creates no file.
 * MSPROBE_INVALID: msprobe_last_error() begins with the name of Python's exception: "TypeError: eps should be a float". */
MSPROBE_API msprobe_status msprobe_monitor_open(const char* config_path, const char* config_text,
                                                const msprobe_monitor_options* options, msprobe_monitor** monitor);
/* Closes the files and frees the monitor. A step that has not ended is dropped. NULL is allowed. */
MSPROBE_API msprobe_status msprobe_monitor_close(msprobe_monitor* monitor);

/* The value of a key of the configuration after defaults and checks, as JSON text; also "warnings" (texts to be logged),
 * "folder" (where this rank's files go), "step", "collected", "dynamic_on", "stop_step". MSPROBE_SKIP: no such key. The
 * text lives until the next call of this thread. */
MSPROBE_API msprobe_status msprobe_monitor_setting(msprobe_monitor* monitor, const char* key, const char** json);
/* Replaces a setting while training; `key` is "ops". */
MSPROBE_API msprobe_status msprobe_monitor_set(msprobe_monitor* monitor, const char* key, const char* json);
/* Before the first step ends. */
MSPROBE_API msprobe_status msprobe_monitor_set_rank(msprobe_monitor* monitor, int32_t rank);
/* The number of the step under way. */
MSPROBE_API msprobe_status msprobe_monitor_set_step(msprobe_monitor* monitor, uint64_t step);
/* Not 0 while this step is in the window: hooks return at once otherwise. Lives as long as the monitor. */
MSPROBE_API const volatile int* msprobe_monitor_collecting(const msprobe_monitor* monitor);

typedef struct msprobe_series {
  size_t struct_size;
  /* Layout 1: actv actv_grad grad_unreduced grad_reduced exp_avg exp_avg_sq param_origin param_updated mg_direction update
   * ratio comm other attention_hook linear_hook moe_router_weight_hook moe_router_logit_hook. Layout 2: module weight_grad
   * optimizer param cc, as the configuration spells them. */
  const char* quantity;
  int32_t stage;      /* of the model: column vpp_stage; layout 2: -1 for a single model */
  int32_t micro_step; /* -1: none */
  const char* name;   /* of the parameter, or <module>.input; of comm the operation */
  /* Layout 2: column scope. Layout 1: the last part of the tag if it is not the usual one ("acc_grad", "pre_grad"); of comm
   * "pre_0", "post_1". NULL: the usual one. */
  const char* scope;
} msprobe_series;
/* The number of a series, the same for the same series: numbers have no gaps. */
MSPROBE_API msprobe_status msprobe_monitor_series(msprobe_monitor* monitor, const msprobe_series* series, uint32_t* id);

/* A value of a series in this step. A later value of the same step replaces it, with two exceptions: values of comm are folded
 * (least min, greatest max, sum of norm and nans, mean of the rest), and values of layout 2 are separate rows. MSPROBE_SKIP
 * outside of the window. The tensor's elements are on the host, or its `statistics` are given. */
MSPROBE_API msprobe_status msprobe_monitor_observe(msprobe_monitor* monitor, uint32_t id, const msprobe_tensor* tensor);
/* The same from statistics that a device computed; for integer types it reads integer_max and integer_min. `below`: how many
 * elements are smaller than eps; UINT64_MAX if that is unknown. */
MSPROBE_API msprobe_status msprobe_monitor_observe_statistics(msprobe_monitor* monitor, uint32_t id,
                                                              const msprobe_statistics* statistics, uint64_t below,
                                                              const int64_t* shape, uint32_t ndim, uint32_t dtype);
/* The columns of a hook's file, in its order; of any other quantity one number, a tensor without axes. */
MSPROBE_API msprobe_status msprobe_monitor_observe_values(msprobe_monitor* monitor, uint32_t id, const double* values,
                                                          size_t count);
/* Something that is no tensor, or a gradient that did not come: a row of NaN, which is no alert. */
MSPROBE_API msprobe_status msprobe_monitor_absent(msprobe_monitor* monitor, uint32_t id);
/* The values of the series in this step, an object of statistics as JSON text; MSPROBE_SKIP if there is none. The text lives
 * until the next call of this thread. */
MSPROBE_API msprobe_status msprobe_monitor_value(msprobe_monitor* monitor, uint32_t id, const char** json);

typedef struct msprobe_step_result {
  size_t struct_size;
  int32_t written;   /* there were rows */
  int32_t finished;  /* collect_times is reached, or the window is behind: news, told once */
  uint32_t alerts;
} msprobe_step_result;
/* Ends the step and begins the next one. MSPROBE_FAILED: something could not be written; told once for each reason that is
 * new, the training can go on. */
MSPROBE_API msprobe_status msprobe_monitor_step_end(msprobe_monitor* monitor, msprobe_step_result* result);
/* The hits of the last step: a list of {"rule", "tag", "op", "step", "value", "mean", and the fields of anomaly.json}. The
 * text lives until the next call of this thread. */
MSPROBE_API msprobe_status msprobe_monitor_alerts(msprobe_monitor* monitor, const char** json);
/* Dynamic mode: looks at the configuration file after a step. `changed` 1: collect anew from the next step on, attach
 * hooks as the settings say; 2: collection was switched off, remove them. MSPROBE_INVALID: the file cannot be used, the
 * old settings hold (told once for each change of the file). */
MSPROBE_API msprobe_status msprobe_monitor_reload(msprobe_monitor* monitor, int* changed);

#ifdef __cplusplus
}
#endif
#endif
