/* Writes a partition as text and as JSON. */
#include <string.h>

#include "base/format.h"
#include "base/json.h"
#include "partition/partition.h"

static const char *const space_names[AH_SPACE_COUNT] = {
    [AH_SPACE_NONE] = "none",
    [AH_SPACE_PARAM] = "param",
    [AH_SPACE_SHARED] = "shared",
    [AH_SPACE_GRAD] = "grad",
    [AH_SPACE_SHARED_GRAD] = "shared_grad",
    [AH_SPACE_INPUT] = "input",
    [AH_SPACE_OUTPUT] = "output",
    [AH_SPACE_SAVED] = "saved",
    [AH_SPACE_WORK] = "work",
    [AH_SPACE_BOUNDARY] = "boundary",
    [AH_SPACE_TARGETS] = "targets",
    [AH_SPACE_LOSS] = "loss",
    [AH_SPACE_SCALE] = "scale",
    [AH_SPACE_WORKSPACE] = "workspace",
    [AH_SPACE_POSITIONS] = "positions",
    [AH_SPACE_CACHE] = "cache",
    [AH_SPACE_CHEAP] = "cheap",
};

/* Returns true for programs that are shown: INFER only of the head, adding ones only if they have calls. */
static bool has_program(const struct ah_code *code, int number)
{
    if (number == AH_PROGRAM_FORWARD_ADD || number == AH_PROGRAM_BACKWARD_ADD)
        return code->program[number].count > 0;
    return number != AH_PROGRAM_INFER || code->logits.space != AH_SPACE_NONE;
}

static const struct ah_group *group_of(const struct ah_partition *partition, int class)
{
    return &partition->groups[ah__class_representative((enum ah_class)ah__class_alike(class), partition->layers)];
}

/* Returns the name of a further kind of blocks, of which the first is called `first`. */
static const char *further_name(int class, const char *first)
{
    return class == AH_CLASS_COUNT ? first : ah__class_names[class];
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

static void print_row(const struct ah_partition *partition, int class, FILE *to)
{
    const struct ah_code *code = &partition->code[class];
    const struct ah_group *group = group_of(partition, class);
    char name[32], sizes[5][24];
    const int64_t bytes[5] = {group->count * ah__dtype_bytes(partition->compute), code->saved_bytes + code->input_bytes,
                              code->input_bytes, code->saved_bytes, ah__code_work_bytes(code)};
    for (int i = 0; i < 5; i++)
        ah_size_format(sizes[i], sizeof sizes[i], bytes[i]);
    snprintf(name, sizeof name, "%s%s", ah__class_names[class], class == AH_CLASS_BLOCK ? " (each)" : "");
    ah__fprintf(to, "%-14s %12lld %11s %11s %11s %11s %11s %10.3g %10.3g\n", name, (long long)group->elements, sizes[0],
                sizes[1], sizes[2], sizes[3], sizes[4], code->program[AH_PROGRAM_FORWARD].flops,
                code->program[AH_PROGRAM_BACKWARD].flops);
}

static void print_operand(const struct ah_operand *operand, const char *before, FILE *to)
{
    char shape[96];
    if (operand->space != AH_SPACE_NONE)
        fprintf(to, "%s%s+%lld %s", before, space_names[operand->space], (long long)operand->offset,
                ah__shape_format(shape, sizeof shape, &operand->meta.shape));
}

static void print_program(const char *class, const char *name, const struct ah_program *program, FILE *to)
{
    char attr[AH_ATTR_TEXT_BYTES];
    ah__fprintf(to, "\n%s %s: %d calls, %lld bytes of work, %.4g flop\n", class, name, program->count,
                (long long)program->work_bytes, program->flops);
    for (int i = 0; i < program->count; i++) {
        const struct ah_call *call = &program->calls[i];
        fprintf(to, "  ");
        for (int j = 0; j < AH_OP_MAX_OUTPUTS; j++)
            print_operand(&call->out[j], j ? ", " : "", to);
        fprintf(to, " = %s(", ah__op_table[call->op]->name);
        for (int j = 0; j < AH_OP_MAX_INPUTS; j++)
            print_operand(&call->in[j], j ? ", " : "", to);
        ah__attr_format(attr, sizeof attr, &call->attr);
        fprintf(to, "%s%s)\n", attr[0] ? ", " : "", attr);
    }
}

static void print_programs(const char *class, const struct ah_code *code, FILE *to)
{
    for (int i = 0; i < AH_PROGRAM_COUNT; i++)
        if (has_program(code, i))
            print_program(class, ah__program_names[i], &code->program[i], to);
}

int ah_partition_print(const struct ah_partition *partition, FILE *to)
{
    int64_t total = 0;
    for (int g = 0; g < partition->group_count; g++)
        total += partition->groups[g].elements;
    char times[32] = "";
    if (ah__micro_batches(partition) > 1)
        snprintf(times, sizeof times, "%d micro-batches of ", ah__micro_batches(partition));
    fprintf(to, "%d blocks, %sbatch %lld x %lld tokens, %s, %lld parameters%s, signature %016llx\n\n",
            partition->layers, times, (long long)partition->batch, (long long)partition->seq,
            ah__dtype_name(partition->compute), (long long)total,
            partition->shared_group >= 0 ? " (the head shares the embedding's)" : "",
            (unsigned long long)partition->signature);
    fprintf(to, "%-14s %12s %11s %11s %11s %11s %11s %10s %10s\n", "partition", "parameters", "M_p", "M_a", "M_a'",
            "saved", "work", "flop fwd", "flop bwd");
    for (int i = 0; i < AH_CLASS_COUNT; i++)
        print_row(partition, i, to);
    if (partition->note)
        ah__fprintf(to, "%s\n", partition->note);
    for (int class = AH_CLASS_COUNT; class < partition->class_count; class ++)
        if (partition->blocks_from[class][1] > 0)
            ah__fprintf(to, "%d of the blocks are of another kind: %.3g flop forward, %.3g backward\n",
                        partition->blocks_from[class][1], partition->code[class].program[AH_PROGRAM_FORWARD].flops,
                        partition->code[class].program[AH_PROGRAM_BACKWARD].flops);
    ah__fprintf(to, "one iteration: %.4g flop forward, %.4g flop backward\n", partition->flops_forward,
                partition->flops_backward);
    for (int i = 0; i < AH_CLASS_COUNT; i++)
        print_programs(ah__class_names[i], &partition->code[i], to);
    for (int class = AH_CLASS_COUNT; class < partition->class_count; class ++)
        if (partition->blocks_from[class][1] > 0)
            print_programs(further_name(class, "other block"), &partition->code[class], to);
    return ferror(to) ? ah__fail(AH_EIO, "printing the partition failed") : AH_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static int no_memory(void)
{
    return ah__fail(AH_ENOMEM, "out of host memory: partition as JSON");
}

/* Adds a member to an object (name) or an element to an array (no name); returns it, or null. */
static cJSON *add_child(cJSON *parent, const char *name, cJSON *child)
{
    if (!child)
        return NULL;
    if (name ? cJSON_AddItemToObject(parent, name, child) : cJSON_AddItemToArray(parent, child))
        return child;
    cJSON_Delete(child);
    return NULL;
}

/* Adds an operand as a member of an object (name) or an element of an array (no name). */
static int add_operand(cJSON *parent, const char *name, const struct ah_operand *operand)
{
    char text[160], shape[96];
    snprintf(text, sizeof text, "%s+%lld %s %s", space_names[operand->space], (long long)operand->offset,
             ah__dtype_name(operand->meta.dtype), ah__shape_format(shape, sizeof shape, &operand->meta.shape));
    return operand->space == AH_SPACE_NONE || add_child(parent, name, cJSON_CreateString(text)) ? AH_OK : no_memory();
}

static int add_attr(cJSON *object, const struct ah_attr *attr)
{
    struct ah_attr stretch = {.stretch = attr->stretch};
    char text[AH_ATTR_TEXT_BYTES];
    unsigned set = ah__attr_set(attr);
#define ADD(id, type, name)                                                                                            \
    if (set & AH_ATTR_##id)                                                                                            \
        AH_TRY(_Generic(attr->name, float                                                                              \
                        : ah__json_add_double, default                                                                 \
                        : ah__json_add_int)(object, #name, attr->name));
    AH_ATTR_NUMBERS(ADD)
#undef ADD
    if (set & AH_ATTR_STRETCH)
        return ah__json_add_string(object, "stretch", strchr(ah__attr_format(text, sizeof text, &stretch), '=') + 1);
    return AH_OK;
}

static int add_call(cJSON *array, const struct ah_call *call)
{
    cJSON *object = add_child(array, NULL, cJSON_CreateObject());
    AH_TRY(ah__json_add_string(object, "op", ah__op_table[call->op]->name));
    cJSON *in = add_child(object, "in", cJSON_CreateArray()), *out = add_child(object, "out", cJSON_CreateArray());
    if (!in || !out)
        return no_memory();
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        AH_TRY(add_operand(in, NULL, &call->in[i]));
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        AH_TRY(add_operand(out, NULL, &call->out[i]));
    return add_attr(object, &call->attr);
}

static int add_program(cJSON *parent, const char *name, const struct ah_program *program)
{
    cJSON *object = add_child(parent, name, cJSON_CreateObject());
    AH_TRY(ah__json_add_int(object, "work_bytes", program->work_bytes));
    AH_TRY(ah__json_add_double(object, "flops", program->flops));
    cJSON *calls = add_child(object, "calls", cJSON_CreateArray());
    if (!calls)
        return no_memory();
    for (int i = 0; i < program->count; i++)
        AH_TRY(add_call(calls, &program->calls[i]));
    return AH_OK;
}

static int add_code(cJSON *parent, const char *name, const struct ah_partition *partition, int class,
                    const struct ah_code *code)
{
    cJSON *object = add_child(parent, name, cJSON_CreateObject());
    AH_TRY(ah__json_add_int(object, "parameters", group_of(partition, class)->elements));
    AH_TRY(ah__json_add_int(object, "decayed", group_of(partition, class)->decayed));
    AH_TRY(ah__json_add_int(object, "input_bytes", code->input_bytes));
    AH_TRY(ah__json_add_int(object, "output_bytes", code->output_bytes));
    AH_TRY(ah__json_add_int(object, "saved_bytes", code->saved_bytes));
    AH_TRY(ah__json_add_int(object, "kept_bytes", code->kept_bytes));
    AH_TRY(ah__json_add_int(object, "boundary_bytes", code->boundary_bytes));
    for (int i = 0; i < AH_PROGRAM_COUNT; i++)
        if (has_program(code, i))
            AH_TRY(add_program(object, ah__program_names[i], &code->program[i]));
    return add_operand(object, "logits", &code->logits);
}

static int fill_tree(cJSON *tree, const struct ah_partition *partition)
{
    char count[32];
    AH_TRY(ah__json_add_hash(tree, "signature", partition->signature));
    AH_TRY(ah__json_add_string(tree, "dtype", ah__dtype_name(partition->compute)));
    AH_TRY(ah__json_add_int(tree, "layers", partition->layers));
    if (partition->frozen_blocks)
        AH_TRY(ah__json_add_int(tree, "frozen_blocks", partition->frozen_blocks));
    AH_TRY(ah__json_add_int(tree, "batch", partition->batch));
    AH_TRY(ah__json_add_int(tree, "seq", partition->seq));
    AH_TRY(ah__json_add_int(tree, "micro_batches", ah__micro_batches(partition)));
    AH_TRY(ah__json_add_int(tree, "vocab", partition->vocab));
    AH_TRY(ah__json_add_bool(tree, "shared", partition->shared_group >= 0));
    AH_TRY(ah__json_add_double(tree, "flops_forward", partition->flops_forward));
    AH_TRY(ah__json_add_double(tree, "flops_backward", partition->flops_backward));
    for (int i = 0; i < AH_CLASS_COUNT; i++)
        AH_TRY(add_code(tree, ah__class_names[i], partition, i, &partition->code[i]));
    for (int class = AH_CLASS_COUNT; class < partition->class_count; class ++) {
        if (partition->blocks_from[class][1] == 0)
            continue;
        snprintf(count, sizeof count, "%ss", further_name(class, "other_block"));
        AH_TRY(ah__json_add_int(tree, count, partition->blocks_from[class][1]));
        AH_TRY(add_code(tree, further_name(class, "other_block"), partition, class, &partition->code[class]));
    }
    return AH_OK;
}

const char *ah_partition_note(const struct ah_partition *partition)
{
    return partition->note;
}

int64_t ah_partition_params(const struct ah_partition *partition)
{
    return ah__partition_params(partition);
}

int ah_partition_save(const struct ah_partition *partition, const char *path)
{
    cJSON *tree = cJSON_CreateObject();
    int status = tree ? fill_tree(tree, partition) : no_memory();
    if (status == AH_OK)
        status = ah__json_save(tree, path);
    cJSON_Delete(tree);
    return status;
}
