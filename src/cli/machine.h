/* Machines on the command line: options that need, or exclude, a described machine; and a description of this one. */
#ifndef AH_CLI_MACHINE_H
#define AH_CLI_MACHINE_H

#include "autohete.h"

/* Refuses options that mean nothing with, or without, --hardware. Returns AH_OK or as ah__out_fault. */
int ah__machine_check(const struct ah_session_options *inputs);
/* Returns the memory of this machine in bytes. */
int64_t ah__machine_memory(void);
/* Writes the profile of a session as a hardware file named after its path. Returns the library's status. */
int ah__machine_save(const struct ah_session *session, const char *path);
/* Writes the drive of that profile as a file. */
int ah__machine_save_drive(const struct ah_session *session, const char *path);

#endif
