/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the C interface share. */
#ifndef MSPROBE_TEST_CHECK_H
#define MSPROBE_TEST_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "msprobe/collector.h"

#define CHECK(condition)                                                                         \
  do {                                                                                           \
    if (!(condition)) {                                                                          \
      fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, msprobe_last_error()); \
      exit(1);                                                                                   \
    }                                                                                            \
  } while (0)

#endif
