/* Between the two files that parse: an entry while its body is read. */
#ifndef PTX_PARSE_H
#define PTX_PARSE_H

#include "text.h"

enum { PREFIXES_MOST = 64 };

struct ptx_label {
    char *name;
    int at; /* an instruction; -1: not seen yet */
};

struct ptx_parse {
    struct ptx_text text;
    struct ptx_module *module;
    struct ptx_entry *entry;
    struct ptx_symbol *symbol; /* of the entry */
    struct ptx_prefix prefix[PREFIXES_MOST];
    int prefixes;
    struct ptx_label *label;
    int labels, label_room, instr_room, constant_room;
    int file, file_line; /* of the source, for what comes */
};

/* body.c: from "{" to "}". */
void ptx_body_parse(struct ptx_parse *p);

/* parse.c: a variable's declaration after its space, to ";" or, of a parameter, to what follows its name. */
struct ptx_symbol *ptx_variable_parse(struct ptx_parse *p, enum ptx_space space);
void *ptx_grown(void *array, int used, int *room, size_t bytes);

#endif
