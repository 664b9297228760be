/* Check before a command runs: files that its options write can be written, and none of them is also read. Takes a
 * parsed command; asks the library about each path. */
#ifndef AH_CLI_OUTPUTS_H
#define AH_CLI_OUTPUTS_H

#include "cli/args.h"

/* Returns AH_OK, or AH_EINPUT as ah__out_fault. */
int ah__outputs_check(const struct ah_command *command);

#endif
