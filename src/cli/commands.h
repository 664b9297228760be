/* The commands, one cmd_*.c each. */
#ifndef AH_CLI_COMMANDS_H
#define AH_CLI_COMMANDS_H

#include "cli/args.h"

/* All commands, in the order of --help; null-terminated (main.c). */
extern const struct ah_command *const ah__commands[];

extern const struct ah_command ah__command_train, ah__command_plan, ah__command_profile, ah__command_simulate,
    ah__command_fit, ah__command_generate, ah__command_chat, ah__command_eval, ah__command_export, ah__command_merge,
    ah__command_inspect, ah__command_devices, ah__command_report, ah__command_tokenize, ah__command_data,
    ah__command_completion;

#endif
