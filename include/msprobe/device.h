/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of tensors on a CUDA device, by one kernel that is compiled at run time. Functions return a status of
 * collector.h; the reason of a failure is msprobe_last_error(). */
#ifndef MSPROBE_DEVICE_H
#define MSPROBE_DEVICE_H

#include "msprobe/collector.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct msprobe_gpu msprobe_gpu;

/* Loads the driver (NULL: libcuda.so.1) and NVRTC by name, compiles the kernel for the device with that number, and
 * compares its results for 40 tensors with the host's. MSPROBE_FAILED if anything of that fails. Takes seconds, and
 * must not be called while a graph is captured. */
MSPROBE_API msprobe_status msprobe_gpu_open(const char* driver, const char* compiler, int ordinal, msprobe_gpu** gpu);
/* Waits for the device; results that were not fetched are lost. */
MSPROBE_API msprobe_status msprobe_gpu_close(msprobe_gpu* gpu);
/* Whether the kernel measures this tensor, whose `data` is on the device: MSPROBE_OK, or MSPROBE_SKIP. */
MSPROBE_API msprobe_status msprobe_gpu_takes(const msprobe_tensor* tensor);
/* Measures `count` tensors on a stream, in order with what is there, without waiting for it. slots[i] is what
 * msprobe_add_tensor() gave for a deferred one. MSPROBE_FAILED: the device is not used any more, and what was not
 * fetched stays without numbers. */
MSPROBE_API msprobe_status msprobe_gpu_measure(msprobe_gpu* gpu, msprobe_session* session, void* stream,
                                               const msprobe_tensor* tensors, const uint64_t* slots, size_t count);
/* Waits for the device, and gives the session all results. */
MSPROBE_API msprobe_status msprobe_gpu_drain(msprobe_gpu* gpu, msprobe_session* session);

#ifdef __cplusplus
}
#endif
#endif
