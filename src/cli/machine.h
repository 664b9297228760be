/* Machines on the command line: options that belong to a described one, and this one as a description. */
#ifndef AH_CLI_MACHINE_H
#define AH_CLI_MACHINE_H

#include "autohete.h"

/* Refuses options that mean nothing with, or without, --hardware. As ah__out_fault. */
int ah__machine_check(const struct ah_session_options *inputs);
/* Memory of this machine in bytes. */
int64_t ah__machine_memory(void);
/* Writes the profile of a session as a hardware file named after its path. The library's status. */
int ah__machine_save(const struct ah_session *session, const char *path);

#endif
