/* Takes PTX text, gives a module: global variables, and entries with their parameters; body.c reads what they do. */
#include "parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GLOBALS_BYTES = 1 << 20 };

/* Memory of the parser's; what runs out of it ends. */
static void *taken(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

void *ptx_grown(void *array, int used, int *room, size_t bytes)
{
    if (used < *room)
        return array;
    *room = *room ? *room * 2 : 64;
    return taken(realloc(array, (size_t)*room * bytes));
}

/* ---- variables */

/* Where a variable begins of which `used` bytes are there already. */
static uint64_t placed(size_t *used, size_t bytes, size_t align)
{
    size_t at = (*used + align - 1) / align * align;
    *used = at + bytes;
    return at;
}

static void values_parse(struct ptx_parse *p, char *to, size_t each, size_t bytes)
{
    bool braces = ptx_text_take(&p->text, "{");
    for (size_t at = 0;; at += each) {
        uint64_t value;
        bool minus = ptx_text_take(&p->text, "-");
        if (!ptx_text_number(ptx_text_next(&p->text), &value) || at + each > bytes)
            ptx_text_stop(&p->text, "found %s, expected a number of %zu", p->text.word, bytes / each);
        value = minus ? 0 - value : value;
        memcpy(to + at, &value, each);
        if (!braces || !ptx_text_take(&p->text, ","))
            break;
    }
    if (braces)
        ptx_text_expect(&p->text, "}");
}

/* Its place, by space. */
static uint64_t variable_place(struct ptx_parse *p, enum ptx_space space, size_t bytes, size_t align)
{
    struct ptx_module *m = p->module;
    switch (space) {
    case GLOBAL:
    case CONST:
        if (m->globals_used + bytes + align > GLOBALS_BYTES)
            ptx_text_stop(&p->text, "global variables of more than %d bytes", GLOBALS_BYTES);
        return (uint64_t)(uintptr_t)m->globals + placed(&m->globals_used, bytes, align);
    case SHARED:
        return placed(p->entry ? &p->entry->shared_bytes : &m->shared_bytes, bytes, align);
    case LOCAL:
        return placed(&p->entry->local_bytes, bytes, align);
    default:
        return placed(&p->entry->param_bytes, bytes, align);
    }
}

/* What is said of where a pointer points changes nothing. */
static void pointer_skip(struct ptx_text *t)
{
    if (!ptx_text_take(t, ".ptr"))
        return;
    if (!ptx_text_take(t, ".global") && !ptx_text_take(t, ".const"))
        ptx_text_take(t, ".shared");
    if (ptx_text_take(t, ".align"))
        ptx_text_whole(t);
}

struct ptx_symbol *ptx_variable_parse(struct ptx_parse *p, enum ptx_space space)
{
    struct ptx_text *t = &p->text;
    struct ptx_symbol *symbol = taken(calloc(1, sizeof *symbol));
    struct ptx_symbol **list = p->entry ? &p->symbol : &p->module->symbol;
    size_t align = 1, count = 1;
    symbol->next = *list;
    *list = symbol;
    if (ptx_text_take(t, ".align"))
        align = (size_t)ptx_text_whole(t);
    int type = ptx_type_named(ptx_text_next(t) + 1);
    if (type < 0)
        ptx_text_stop(t, "a variable of the unknown type %s", t->word);
    size_t each = ptx_type_bytes((enum ptx_type)type);
    pointer_skip(t);
    symbol->name = taken(strdup(ptx_text_next(t)));
    symbol->space = space;
    symbol->dynamic = false;
    while (ptx_text_take(t, "[")) {
        symbol->dynamic = ptx_text_peek(t) == ']';
        count *= symbol->dynamic ? 0 : (size_t)ptx_text_whole(t);
        ptx_text_expect(t, "]");
    }
    symbol->bytes = each * count;
    symbol->address = variable_place(p, space, symbol->bytes, align > each ? align : each);
    if (ptx_text_take(t, "=")) {
        if (space != GLOBAL && space != CONST)
            ptx_text_stop(t, "%s has values", symbol->name);
        values_parse(p, (char *)(uintptr_t)symbol->address, each, symbol->bytes);
    }
    return symbol;
}

/* ---- entries */

static void params_parse(struct ptx_parse *p)
{
    struct ptx_entry *entry = p->entry;
    int room = 0;
    ptx_text_expect(&p->text, "(");
    while (!ptx_text_take(&p->text, ")")) {
        if (entry->params)
            ptx_text_expect(&p->text, ",");
        ptx_text_expect(&p->text, ".param");
        const struct ptx_symbol *symbol = ptx_variable_parse(p, PARAM);
        entry->param = ptx_grown(entry->param, entry->params, &room, sizeof *entry->param);
        entry->param[entry->params].at = symbol->address;
        entry->param[entry->params++].bytes = symbol->bytes;
    }
}

static void symbols_free(struct ptx_symbol *symbol)
{
    while (symbol) {
        struct ptx_symbol *next = symbol->next;
        free(symbol->name);
        free(symbol);
        symbol = next;
    }
}

/* What is said of blocks between an entry's parameters and its body. */
static void limits_parse(struct ptx_parse *p)
{
    struct ptx_text *t = &p->text;
    p->entry->threads_most = 1024;
    while (ptx_text_peek(t) == '.') {
        bool most = strcmp(ptx_text_next(t), ".maxntid") == 0;
        if (!most && strcmp(t->word, ".minnctapersm") != 0)
            ptx_text_stop(t, "unknown directive %s", t->word);
        unsigned product = 1;
        do
            product *= (unsigned)ptx_text_whole(t);
        while (ptx_text_take(t, ","));
        if (most)
            p->entry->threads_most = product;
    }
}

static void labels_free(struct ptx_parse *p)
{
    for (int i = 0; i < p->labels; i++)
        free(p->label[i].name);
    p->labels = 0;
}

static void entry_parse(struct ptx_parse *p)
{
    struct ptx_entry *entry = taken(calloc(1, sizeof *entry));
    entry->next = p->module->entry;
    p->module->entry = p->entry = entry;
    entry->module = p->module;
    entry->name = taken(strdup(ptx_text_next(&p->text)));
    entry->granule[0] = entry->granule[1] = 3;
    entry->shared_bytes = p->module->shared_bytes;
    p->file = p->file_line = 0;
    params_parse(p);
    limits_parse(p);
    ptx_body_parse(p);
    entry->executed = taken(calloc(1, (size_t)entry->instrs + 1));
    labels_free(p);
    symbols_free(p->symbol);
    p->symbol = NULL;
    p->entry = NULL;
}

/* ---- the module */

static void file_parse(struct ptx_parse *p)
{
    struct ptx_module *m = p->module;
    int number = (int)ptx_text_whole(&p->text);
    while (m->files <= number) {
        m->file = taken(realloc(m->file, (size_t)(m->files + 1) * sizeof *m->file));
        m->file[m->files++] = NULL;
    }
    ptx_text_next(&p->text);
    const char *slash = strrchr(p->text.word, '/');
    free(m->file[number]);
    m->file[number] = taken(strdup(slash ? slash + 1 : p->text.word + 1));
    m->file[number][strcspn(m->file[number], "\"")] = 0;
    ptx_text_skip_line(&p->text);
}

static void module_parse(struct ptx_parse *p)
{
    static const struct {
        const char *name;
        enum ptx_space space;
    } spaces[] = {{".global", GLOBAL}, {".const", CONST}, {".shared", SHARED}};
    struct ptx_text *t = &p->text;
    while (ptx_text_next(t)[0]) {
        const char *word = t->word;
        int space = 0;
        while (space < 3 && strcmp(word, spaces[space].name) != 0)
            space++;
        if (strcmp(word, ".version") == 0 || strcmp(word, ".target") == 0 || strcmp(word, ".address_size") == 0)
            ptx_text_skip_line(t);
        else if (strcmp(word, ".file") == 0)
            file_parse(p);
        else if (strcmp(word, ".section") == 0) {
            ptx_text_next(t);
            ptx_text_skip_braces(t);
        } else if (strcmp(word, ".entry") == 0)
            entry_parse(p);
        else if (space < 3) {
            ptx_variable_parse(p, spaces[space].space);
            ptx_text_expect(t, ";");
        } else if (strcmp(word, ".visible") != 0 && strcmp(word, ".weak") != 0 && strcmp(word, ".extern") != 0)
            ptx_text_stop(t, "unknown directive %s", word);
    }
}

struct ptx_module *ptx_module_new(const char *text, const char *name, char error[PTX_ERROR_BYTES])
{
    struct ptx_parse *p = taken(calloc(1, sizeof *p));
    struct ptx_module *volatile m = p->module = taken(calloc(1, sizeof *p->module));
    m->globals = taken(calloc(1, GLOBALS_BYTES));
    m->name = taken(strdup(name));
    p->text.at = text;
    p->text.line = 1;
    p->text.name = m->name;
    p->text.error = error;
    if (setjmp(p->text.stop) == 0)
        module_parse(p);
    else {
        ptx_module_free(m);
        m = NULL;
    }
    labels_free(p);
    symbols_free(p->symbol);
    free(p->label);
    free(p);
    return m;
}

void ptx_module_free(struct ptx_module *module)
{
    if (!module)
        return;
    while (module->entry) {
        struct ptx_entry *entry = module->entry;
        module->entry = entry->next;
        free(entry->name);
        free(entry->instr);
        free(entry->constant);
        free(entry->param);
        free(entry->executed);
        free(entry);
    }
    for (int i = 0; i < module->files; i++)
        free(module->file[i]);
    symbols_free(module->symbol);
    free(module->file);
    free(module->globals);
    free(module->name);
    free(module);
}

const struct ptx_entry *ptx_module_entry(const struct ptx_module *module, const char *name)
{
    const struct ptx_entry *entry = module->entry;
    while (entry && strcmp(entry->name, name) != 0)
        entry = entry->next;
    return entry;
}

const struct ptx_entry *ptx_module_next(const struct ptx_module *module, const struct ptx_entry *entry)
{
    return entry ? entry->next : module->entry;
}

const char *ptx_entry_name(const struct ptx_entry *entry)
{
    return entry->name;
}

size_t ptx_entry_param_bytes(const struct ptx_entry *entry)
{
    return entry->param_bytes;
}

void ptx_entry_pack(const struct ptx_entry *entry, char *to, void *const *params)
{
    for (int i = 0; i < entry->params; i++)
        memcpy(to + entry->param[i].at, params[i], entry->param[i].bytes);
}

struct ptx_coverage ptx_entry_coverage(const struct ptx_entry *entry)
{
    struct ptx_coverage out = {entry->instrs, 0, entry->launches};
    for (int i = 0; i < entry->instrs; i++)
        out.executed += entry->executed[i];
    return out;
}

bool ptx_entry_executed(const struct ptx_entry *entry, long instruction, int *line)
{
    *line = entry->instr[instruction].line;
    return entry->executed[instruction];
}
