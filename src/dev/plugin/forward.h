/* On a plugin's side of dev/plugin.h: what device sources call of base/, comm/ and host/, under its ordinary names. */
#ifndef AH_DEV_PLUGIN_FORWARD_H
#define AH_DEV_PLUGIN_FORWARD_H

#include "dev/plugin.h"

/* To be called first of all, by autohete_plugin(); calls nothing. */
void ah__plugin_forward(const struct ah_plugin_host *host);

#endif
