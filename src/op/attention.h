/* What attributes say of attention: for its rows and for the kernels of all devices. */
#ifndef AH_OP_ATTENTION_H
#define AH_OP_ATTENTION_H

#include "op/op.h"

/* What a query's product with a key is multiplied by, heads being of `size` channels. */
float ah__attention_scale(const struct ah_attr *attr, int64_t size);
/* AH_EINPUT names a window, scale or cap that is none. */
int ah__attention_expect(const struct ah_attr *attr);

#endif
