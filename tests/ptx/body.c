/* Parses what an entry does: registers, variables, labels, instructions with their operands. */
#include "parse.h"

#include <stdlib.h>
#include <string.h>

/* ---- names */

/* The register of a name: "%r12" among those that "%r<40>" declares, or one that is declared alone. */
static int register_named(struct ptx_parse *p, const char *name)
{
    size_t letters = strcspn(name, "0123456789");
    for (int i = p->prefixes - 1; i >= 0; i--) {
        const struct ptx_prefix *prefix = &p->prefix[i];
        if (prefix->count == 0 && strcmp(prefix->name, name) == 0)
            return prefix->first;
        if (prefix->count && strlen(prefix->name) == letters && strncmp(prefix->name, name, letters) == 0) {
            char *end;
            long number = strtol(name + letters, &end, 10);
            if (name[letters] && *end == 0 && number < prefix->count)
                return prefix->first + (int)number;
        }
    }
    return ptx_special_named(name);
}

static const struct ptx_symbol *symbol_named(const struct ptx_parse *p, const char *name)
{
    const struct ptx_symbol *const lists[] = {p->symbol, p->module->symbol};
    for (int i = 0; i < 2; i++)
        for (const struct ptx_symbol *s = lists[i]; s; s = s->next)
            if (strcmp(s->name, name) == 0)
                return s;
    return NULL;
}

/* Constants are negative values until the number of registers is known. */
static int constant_add(struct ptx_parse *p, uint64_t value)
{
    struct ptx_entry *e = p->entry;
    for (int i = 0; i < e->constants; i++)
        if (e->constant[i] == value)
            return -2 - i;
    e->constant = ptx_grown(e->constant, e->constants, &p->constant_room, sizeof *e->constant);
    e->constant[e->constants++] = value;
    return -1 - e->constants;
}

static int label_of(struct ptx_parse *p, const char *name)
{
    for (int i = 0; i < p->labels; i++)
        if (strcmp(p->label[i].name, name) == 0)
            return i;
    p->label = ptx_grown(p->label, p->labels, &p->label_room, sizeof *p->label);
    p->label[p->labels] = (struct ptx_label){strdup(name), -1};
    return p->labels++;
}

/* ---- operands */

/* The value of the symbol that was just read: where it lies in its space. */
static uint64_t symbol_address(struct ptx_parse *p, const struct ptx_symbol *s)
{
    p->entry->dynamic |= s->dynamic;
    return s->dynamic ? DYNAMIC_SHARED : s->address;
}

/* A register, number or name. */
static int value_parse(struct ptx_parse *p)
{
    struct ptx_text *t = &p->text;
    uint64_t number;
    bool minus = ptx_text_take(t, "-");
    const char *word = ptx_text_next(t);
    if (ptx_text_number(word, &number))
        return constant_add(p, minus ? 0 - number : number);
    int reg = register_named(p, word);
    if (reg >= 0)
        return reg;
    const struct ptx_symbol *s = symbol_named(p, word);
    if (!s)
        ptx_text_stop(t, "unknown name %s", word);
    number = symbol_address(p, s);
    if (ptx_text_take(t, "+"))
        number += (uint64_t)ptx_text_whole(t);
    return constant_add(p, number);
}

/* One value, or some in braces: how many. */
static int values_parse(struct ptx_parse *p, int *out)
{
    int count = 0;
    if (!ptx_text_take(&p->text, "{")) {
        *out = value_parse(p);
        return 1;
    }
    do {
        if (count == VECTOR_MOST)
            ptx_text_stop(&p->text, "more than %d values", VECTOR_MOST);
        out[count++] = value_parse(p);
    } while (ptx_text_take(&p->text, ","));
    ptx_text_expect(&p->text, "}");
    return count;
}

static void address_parse(struct ptx_parse *p, struct ptx_instr *in)
{
    ptx_text_expect(&p->text, "[");
    in->address = value_parse(p);
    if (ptx_text_take(&p->text, "+"))
        in->offset = ptx_text_whole(&p->text);
    else if (ptx_text_peek(&p->text) == '-')
        in->offset = ptx_text_whole(&p->text);
    ptx_text_expect(&p->text, "]");
}

static void result_parse(struct ptx_parse *p, struct ptx_instr *in)
{
    in->results = values_parse(p, in->result);
    for (int i = 0; i < in->results; i++)
        if (in->result[i] < SPECIALS)
            ptx_text_stop(&p->text, "%s cannot be written", p->text.word);
    if (in->op->kind == EXCHANGES && ptx_text_take(&p->text, "|"))
        in->also = value_parse(p);
}

static const int matrix_values[] = {MATRIX_LEFT, MATRIX_RIGHT, MATRIX_SUMS};

static void sources_parse(struct ptx_parse *p, struct ptx_instr *in)
{
    int wanted = in->op->sources + (in->combine != COMBINE_NONE);
    for (int i = 0; i < wanted; i++) {
        if (i > 0 || in->op->results)
            ptx_text_expect(&p->text, ",");
        if (i == 2 && in->combine != COMBINE_NONE)
            in->combine_not = ptx_text_take(&p->text, "!");
        int count = values_parse(p, in->source + in->sources);
        in->sources += count;
        if (in->op->kind == MULTIPLIES && count != matrix_values[i])
            ptx_text_stop(&p->text, "%d values of a matrix, expected %d", count, matrix_values[i]);
        if (count > 1 && in->op->kind != COPIES && in->op->kind != MULTIPLIES)
            ptx_text_stop(&p->text, "a vector where one value is expected");
    }
}

/* A vector's length is told by its opcode; mov's by the widths of both sides. */
static void vectors_check(struct ptx_parse *p, struct ptx_instr *in)
{
    bool memory = in->op->kind == LOADS || in->op->kind == STORES;
    int have = in->op->kind == STORES ? in->sources : in->results;
    int expected = in->modifiers & M_VECTOR ? in->vector : in->op->kind == MULTIPLIES ? MATRIX_SUMS : 1;
    if (memory && have != expected)
        ptx_text_stop(&p->text, "%d values, expected %d", have, expected);
    if (in->op->kind == COPIES && in->results + in->sources > 2) {
        if (in->results > 1 && in->sources > 1)
            ptx_text_stop(&p->text, "vectors on both sides");
        in->kind = PACKS;
    } else if (!memory && in->results > expected)
        ptx_text_stop(&p->text, "%d results", in->results);
}

static void operands_parse(struct ptx_parse *p, struct ptx_instr *in)
{
    switch (in->op->kind) {
    case LOADS:
        result_parse(p, in);
        ptx_text_expect(&p->text, ",");
        address_parse(p, in);
        break;
    case STORES:
        address_parse(p, in);
        ptx_text_expect(&p->text, ",");
        in->sources = values_parse(p, in->source);
        break;
    case BRANCHES:
        in->target = label_of(p, ptx_text_next(&p->text));
        break;
    default:
        if (in->op->results)
            result_parse(p, in);
        sources_parse(p, in);
    }
    vectors_check(p, in);
    ptx_text_expect(&p->text, ";");
}

/* ---- statements */

static void memory_note(struct ptx_entry *e, const struct ptx_instr *in)
{
    unsigned char log2 = (unsigned char)__builtin_ctz(ptx_type_bytes(in->type));
    bool accesses = in->op->kind == LOADS || in->op->kind == STORES;
    for (int shared = 0; shared < 2; shared++)
        if (accesses && (in->space == GENERIC || in->space == (shared ? SHARED : GLOBAL)) && log2 < e->granule[shared])
            e->granule[shared] = log2;
}

static void instr_parse(struct ptx_parse *p)
{
    struct ptx_text *t = &p->text;
    struct ptx_entry *e = p->entry;
    struct ptx_instr in = {.guard = -1, .also = -1, .target = -1, .address = -1};
    in.line = t->line;
    in.file = p->file;
    in.file_line = p->file_line;
    in.module = p->module;
    if (strcmp(t->word, "@") == 0) {
        in.guard_not = ptx_text_take(t, "!");
        in.guard = value_parse(p);
        ptx_text_next(t);
    }
    const char *wrong = ptx_decode(&in, t->word);
    if (wrong)
        ptx_text_stop(t, "%s", wrong);
    in.kind = in.op->kind;
    operands_parse(p, &in);
    memory_note(e, &in);
    e->instr = ptx_grown(e->instr, e->instrs, &p->instr_room, sizeof *e->instr);
    e->instr[e->instrs++] = in;
}

static void registers_parse(struct ptx_parse *p)
{
    struct ptx_text *t = &p->text;
    if (ptx_type_named(ptx_text_next(t) + 1) < 0)
        ptx_text_stop(t, "registers of the unknown type %s", t->word);
    do {
        if (p->prefixes == PREFIXES_MOST)
            ptx_text_stop(t, "more than %d declarations of registers", PREFIXES_MOST);
        struct ptx_prefix *prefix = &p->prefix[p->prefixes++];
        if (strlen(ptx_text_next(t)) >= sizeof prefix->name)
            ptx_text_stop(t, "a register's name as long as %s", t->word);
        strcpy(prefix->name, t->word);
        prefix->first = p->entry->registers;
        prefix->count = 0;
        if (ptx_text_take(t, "<")) {
            prefix->count = (int)ptx_text_whole(t);
            ptx_text_expect(t, ">");
        }
        p->entry->registers += prefix->count ? prefix->count : 1;
    } while (ptx_text_take(t, ","));
    ptx_text_expect(t, ";");
}

static void directive_parse(struct ptx_parse *p)
{
    struct ptx_text *t = &p->text;
    if (strcmp(t->word, ".loc") == 0) {
        p->file = (int)ptx_text_whole(t);
        p->file_line = (int)ptx_text_whole(t);
        ptx_text_skip_line(t);
    } else if (strcmp(t->word, ".reg") == 0)
        registers_parse(p);
    else if (strcmp(t->word, ".pragma") == 0) {
        ptx_text_next(t);
        ptx_text_expect(t, ";");
    } else if (strcmp(t->word, ".shared") == 0 || strcmp(t->word, ".local") == 0) {
        ptx_variable_parse(p, t->word[1] == 's' ? SHARED : LOCAL);
        ptx_text_expect(t, ";");
    } else
        ptx_text_stop(t, "unknown directive %s", t->word);
}

/* Labels become instructions, constants registers behind the others. */
static void values_settle(struct ptx_parse *p)
{
    struct ptx_entry *e = p->entry;
    for (int i = 0; i < e->instrs; i++) {
        struct ptx_instr *in = &e->instr[i];
        if (in->target >= 0) {
            const struct ptx_label *label = &p->label[in->target];
            p->text.line = in->line;
            if (label->at < 0)
                ptx_text_stop(&p->text, "there is no label %s", label->name);
            in->target = label->at;
        }
        for (int j = 0; j < in->sources; j++)
            in->source[j] = in->source[j] < -1 ? e->registers - 2 - in->source[j] : in->source[j];
        in->address = in->address < -1 ? e->registers - 2 - in->address : in->address;
    }
}

void ptx_body_parse(struct ptx_parse *p)
{
    struct ptx_text *t = &p->text;
    int scope[8], depth = 0;
    p->prefixes = p->instr_room = p->constant_room = 0;
    p->entry->registers = SPECIALS;
    ptx_text_expect(t, "{");
    do {
        ptx_text_next(t);
        if (strcmp(t->word, "{") == 0) {
            if (depth == 7)
                ptx_text_stop(t, "braces within braces");
            scope[depth++] = p->prefixes;
        } else if (strcmp(t->word, "}") == 0) {
            if (depth > 0)
                p->prefixes = scope[--depth];
            else
                break;
        } else if (t->word[0] == '.')
            directive_parse(p);
        else if (ptx_text_peek(t) == ':') {
            int label = label_of(p, t->word);
            p->label[label].at = p->entry->instrs;
            ptx_text_next(t);
        } else if (t->word[0])
            instr_parse(p);
    } while (t->word[0]);
    if (!t->word[0])
        ptx_text_stop(t, "the end within %s", p->entry->name);
    values_settle(p);
}
