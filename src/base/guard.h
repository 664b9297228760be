/* The boundary to libraries written in C++: what they throw ends here as a status.
 *
 * Takes a function that calls such a library, gives back whether it returned. Must not know which library it is. */
#ifndef AH_BASE_GUARD_H
#define AH_BASE_GUARD_H

#ifdef __cplusplus
extern "C" {
#endif

/* Calls call(context), which must hold nothing that only its return would release: it is left in mid-course when the
 * library throws, and what the library itself holds by then may be lost. AH_ENOMEM for want of memory, AH_EINTERNAL for
 * anything else, with a message that begins with `what`. Files with such functions are compiled with -fexceptions. */
int ah__guard_run(const char *what, void (*call)(void *context), void *context);

#ifdef __cplusplus
}
#endif

#endif
