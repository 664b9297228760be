/* Takes an opcode with its modifiers and types ("setp.lt.and.ftz.f32") apart and finds the table's row for it. */
#include "inside.h"

#include <stdio.h>
#include <string.h>

static const char *const type_names[TYPES] = {"b8",  "b16", "b32", "b64",  "u8",     "u16", "u32", "u64", "s8",
                                              "s16", "s32", "s64", "bf16", "bf16x2", "f16", "f32", "f64", "pred"};
static const unsigned char type_bytes[TYPES] = {1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 2, 4, 8, 1};

unsigned ptx_type_bytes(enum ptx_type type)
{
    return type_bytes[type];
}

int ptx_type_named(const char *name)
{
    for (int i = 0; i < TYPES; i++)
        if (name[0] == type_names[i][0] && strcmp(name, type_names[i]) == 0)
            return i;
    return -1;
}

int ptx_special_named(const char *name)
{
    static const char *const names[SPECIALS] = {"%tid.x",    "%tid.y",    "%tid.z",   "%ntid.x",  "%ntid.y",
                                                "%ntid.z",   "%ctaid.x",  "%ctaid.y", "%ctaid.z", "%nctaid.x",
                                                "%nctaid.y", "%nctaid.z", "%laneid",  "%warpid"};
    for (int i = 0; i < SPECIALS; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

/* What a modifier is, and what it says. */
static const struct modifier {
    const char *name;
    uint32_t is;
    int value;
} modifiers[] = {
    {"rn", M_ROUNDING, RN},
    {"rz", M_ROUNDING, RZ},
    {"rm", M_ROUNDING, RM},
    {"rp", M_ROUNDING, RP},
    {"rni", M_ROUNDING, RNI},
    {"rzi", M_ROUNDING, RZI},
    {"rmi", M_ROUNDING, RMI},
    {"rpi", M_ROUNDING, RPI},
    {"ftz", M_FTZ, 0},
    {"sat", M_SAT, 0},
    {"approx", M_APPROX, 0},
    {"full", M_FULL, 0},
    {"lo", M_PART, LO},
    {"hi", M_PART, HI},
    {"wide", M_PART, WIDE},
    {"uni", M_UNI, 0},
    {"sync", M_SYNC, 0},
    {"aligned", M_ALIGNED, 0},
    {"warp", M_WARP, 0},
    {"global", M_SPACE, GLOBAL},
    {"shared", M_SPACE, SHARED},
    {"local", M_SPACE, LOCAL},
    {"param", M_SPACE, PARAM},
    {"const", M_SPACE, CONST},
    {"nc", M_NC, 0},
    {"ca", M_CACHE, 0},
    {"cg", M_CACHE, 0},
    {"cs", M_CACHE, 0},
    {"lu", M_CACHE, 0},
    {"wb", M_CACHE, 0},
    {"v2", M_VECTOR, 2},
    {"v4", M_VECTOR, 4},
    {"v8", M_VECTOR, 8},
    {"eq", M_COMPARE, EQ},
    {"ne", M_COMPARE, NE},
    {"lt", M_COMPARE, LT},
    {"le", M_COMPARE, LE},
    {"gt", M_COMPARE, GT},
    {"ge", M_COMPARE, GE},
    {"equ", M_COMPARE, EQU},
    {"neu", M_COMPARE, NEU},
    {"ltu", M_COMPARE, LTU},
    {"leu", M_COMPARE, LEU},
    {"gtu", M_COMPARE, GTU},
    {"geu", M_COMPARE, GEU},
    {"num", M_COMPARE, NUM},
    {"nan", M_COMPARE, NAN_},
    {"and", M_COMBINE, COMBINE_AND},
    {"or", M_COMBINE, COMBINE_OR},
    {"xor", M_COMBINE, COMBINE_XOR},
    {"bfly", M_MODE, BFLY},
    {"up", M_MODE, UP},
    {"down", M_MODE, DOWN},
    {"idx", M_MODE, IDX},
    {"all", M_MODE, ALL},
    {"any", M_MODE, ANY},
    {"ballot", M_MODE, BALLOT},
    {"to", M_TO, 0},
    {"wrap", M_WRAP, 0},
    {"l", M_DIRECTION, 1},
    {"r", M_DIRECTION, 0},
    {"NaN", M_NAN, 0},
};

static const struct modifier *modifier_named(const char *name)
{
    for (size_t i = 0; i < sizeof modifiers / sizeof *modifiers; i++)
        if (name[0] == modifiers[i].name[0] && strcmp(name, modifiers[i].name) == 0)
            return &modifiers[i];
    return NULL;
}

static void modifier_apply(struct ptx_instr *in, const struct modifier *m)
{
    in->modifiers |= m->is;
    in->ftz |= m->is == M_FTZ;
    in->sat |= m->is == M_SAT;
    if (m->is == M_ROUNDING)
        in->rounding = (enum ptx_rounding)m->value;
    if (m->is == M_PART)
        in->part = (enum ptx_part)m->value;
    if (m->is == M_COMPARE)
        in->compare = (enum ptx_compare)m->value;
    if (m->is == M_COMBINE)
        in->combine = (enum ptx_combine)m->value;
    if (m->is == M_MODE)
        in->mode = (enum ptx_mode)m->value;
    if (m->is == M_VECTOR)
        in->vector = m->value;
    if (m->is == M_SPACE)
        in->space = (enum ptx_space)m->value;
    if (m->is == M_DIRECTION)
        in->left = m->value;
}

const char *ptx_decode(struct ptx_instr *in, const char *word)
{
    static _Thread_local char said[160];
    char text[96], *rest, *part;
    int types = 0, type = -1;
    bool known;
    if (strcmp(word, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32") == 0) {
        in->type = in->from = F32;
        in->op = ptx_op_find(in, "mma", F32, &known);
        return NULL;
    }
    if (strlen(word) >= sizeof text)
        return "an opcode as long as this";
    strcpy(text, word);
    const char *name = strtok_r(text, ".", &rest);
    while ((part = strtok_r(NULL, ".", &rest)) != NULL) {
        const struct modifier *m = modifier_named(part);
        int named = ptx_type_named(part);
        if (m && in->modifiers & m->is)
            m = NULL; /* said twice */
        if (m)
            modifier_apply(in, m);
        else if (named >= 0 && types++ < 2) {
            type = types == 1 ? named : type;
            in->from = (enum ptx_type)named;
        } else {
            snprintf(said, sizeof said, "%s: unknown modifier %s", word, part);
            return said;
        }
    }
    in->type = type < 0 ? B32 : (enum ptx_type)type;
    in->op = name ? ptx_op_find(in, name, type, &known) : NULL;
    if (!in->op || (types == 2 && in->op->kind != LANES)) {
        snprintf(said, sizeof said, "%s: unknown %s", word, name && known ? "modifiers or type" : "opcode");
        return said;
    }
    return NULL;
}
