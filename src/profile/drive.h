/* Drives described by figures with sources: hardware/drives/NAME.json (docs/hardware.md). */
#ifndef AH_PROFILE_DRIVE_H
#define AH_PROFILE_DRIVE_H

#include "profile/profile.h"

/* Reads the drive of a text, or the share that one of `ranks` has of it: a name, "nvme-pcie4", or a path.
 * "2xnvme-pcie4" is two of it, striped, which read, write, hold and last twice as much. AH_EINPUT names the drives that
 * exist, or file and key. */
int ah__drive_load(struct ah_profile_drive *out, const char *text, int ranks);

#endif
