/* The boundary to libraries written in C++: their exceptions end here as a status.
 *
 * Takes a function that calls such a library and tells whether it returned. Must not know which library it is. */
#ifndef AH_BASE_GUARD_H
#define AH_BASE_GUARD_H

#ifdef __cplusplus
extern "C" {
#endif

/* Calls call(context). When the library throws, `call` is left in the middle, so it must hold nothing that only its
 * return would release, and resources of the library itself may be lost. AH_ENOMEM for want of memory, AH_EINTERNAL for
 * any other exception, with a message that begins with `what`. Files with such functions are compiled with
 * -fexceptions. */
int ah__guard_run(const char *what, void (*call)(void *context), void *context);

#ifdef __cplusplus
}
#endif

#endif
