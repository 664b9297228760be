/* Attention's attributes, for its rows and for the kernels of all devices. */
#ifndef AH_OP_ATTENTION_H
#define AH_OP_ATTENTION_H

#include "op/op.h"

/* Returns the factor of a query's product with a key, for heads of `size` channels. */
float ah__attention_scale(const struct ah_attr *attr, int64_t size);
/* Checks window, scale and cap. AH_EINPUT names one out of range. */
int ah__attention_expect(const struct ah_attr *attr);
/* Checks sinks, which may be absent. */
int ah__attention_expect_sinks(const struct ah_meta *sinks, const struct ah_meta *q, const struct ah_attr *attr);

#endif
