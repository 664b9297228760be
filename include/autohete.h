/* AutoHete: train language models that do not fit on the accelerator at hand.
 *
 * The public interface, in the order in which a program uses it:
 *
 *     ah_model -> ah_graph -> ah_partition -> ah_profile -> ah_plan -> trained checkpoint
 *
 * Each arrow but the last is one function that makes an immutable artefact from the one before, for programs that want
 * to look at them. A session (ah_session_open) makes them all from one set of options. ah_train() makes the same
 * artefacts and runs the plan; nothing else runs a plan. A saved plan is given in ah_train_options.plan.
 *
 * Conventions. Functions return 0 (AH_OK) or a negative enum ah_status. Outputs come first; after a failure every
 * output is unchanged and ah_error() has one line that says where the fault is. `new` allocates and `free` releases (a
 * null pointer is fine); `load`, `save`, `print` move an artefact to and from JSON and text. Sizes are bytes, times are
 * int64_t nanoseconds. No function prints, except to a FILE that it is given, or exits, except ah_ranks_close().
 * Objects may be used by one thread at a time. */
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
