/* The commands, one cmd_*.c each. */
#ifndef AH_CLI_COMMANDS_H
#define AH_CLI_COMMANDS_H

#include "cli/args.h"

extern const struct ah_command ah__command_train, ah__command_plan, ah__command_profile, ah__command_simulate,
    ah__command_generate, ah__command_inspect, ah__command_devices, ah__command_report;

#endif
