/* AutoHete: train language models that do not fit on the accelerator at hand.
 *
 * The public interface, in the order in which a program uses it:
 *
 *     ah_model -> ah_graph -> ah_partition -> ah_profile -> ah_plan -> trained checkpoint
 *
 * Each of the first arrows is one function from one immutable artefact to the next, for programs that want to look at
 * them. A session (ah_session_open) makes them from one set of options. ah_train() makes the same artefacts and runs
 * the plan; nothing else does. A saved one is ah_train_options.plan.
 *
 * Conventions. Functions return 0 (AH_OK) or a negative enum ah_status; outputs come first; on failure every output is
 * left untouched and ah_error() holds one line that says where the fault is. `new` allocates and `free` releases (a
 * null pointer is fine); `load`, `save`, `print` move an artefact to and from JSON and text. Sizes are bytes, times are
 * int64_t nanoseconds. Nothing here prints or exits. Objects may be used from one thread at a time. */
#ifndef AUTOHETE_H
#define AUTOHETE_H

#include "autohete/base.h"
#include "autohete/chat.h"
#include "autohete/data.h"
#include "autohete/export.h"
#include "autohete/generate.h"
#include "autohete/graph.h"
#include "autohete/plan.h"
#include "autohete/ranks.h"
#include "autohete/session.h"
#include "autohete/train.h"

#endif
