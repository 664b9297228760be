/* Jinja's tests: x is NAME(arguments). */
#ifndef AH_CHAT_JINJA_TESTS_H
#define AH_CHAT_JINJA_TESTS_H

#include "chat/jinja_call.h"

/* Calls a test. The call has heap, self and raw. AH_EINPUT: this library has no test of that name. */
int ah__test_call(bool *out, struct ah_call *call, const char *name, size_t length);

#endif
