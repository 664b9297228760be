/* Writes a low-rank adapter by itself as a GGUF file. Private to infer/. */
#ifndef AH_INFER_EXPORT_ADAPTER_H
#define AH_INFER_EXPORT_ADAPTER_H

#include "infer/inference.h"

/* Does what ah_export_adapter does, for an adapter that is open. */
int ah__export_adapter(char **note, const char *path, const struct ah_inference *from, const char *type);

#endif
