/* The plugin's side of dev/plugin.h: defines the functions of base/, comm/ and host/ that device sources call. */
#ifndef AH_DEV_PLUGIN_FORWARD_H
#define AH_DEV_PLUGIN_FORWARD_H

#include "dev/plugin.h"

/* Stores `host`. autohete_plugin() calls it first of all; it calls nothing. */
void ah__plugin_forward(const struct ah_plugin_host *host);

#endif
