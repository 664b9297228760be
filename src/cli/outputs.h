/* Before a command runs: what its options name to be written can be, and is none of what they name to be read. Takes a
 * command whose line was parsed; asks the library about each path. */
#ifndef AH_CLI_OUTPUTS_H
#define AH_CLI_OUTPUTS_H

#include "cli/args.h"

/* AH_OK, or a fault as ah__out_fault gives it. */
int ah__outputs_check(const struct ah_command *command);

#endif
