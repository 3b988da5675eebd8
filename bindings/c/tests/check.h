/* What every test program here uses. The first thing that is wrong ends it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlaunch.h"

#define EXPECT(condition)                                                                       \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "line %d: %s; last error: %s\n", __LINE__, #condition,              \
                    rl_last_error());                                                           \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)
#define OK(call) EXPECT((call) == RL_OK)
/* The call is refused, and says why. */
#define REFUSED(call, word)                                                                     \
    do {                                                                                        \
        EXPECT((call) == RL_ERROR_ARGUMENT);                                                    \
        EXPECT(strstr(rl_last_error(), word) != NULL);                                          \
    } while (0)
