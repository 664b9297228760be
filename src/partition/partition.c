#include "partition/partition.h"

#include <string.h>

#include "base/format.h"
#include "base/hash.h"
#include "dev/host/states.h"
#include "partition/compile.h"

/* ---- parameters and groups -------------------------------------------------------------------------------------- */

/* The parts of a group, in this order. */
enum place { TRAINED_MATRICES, TRAINED_VECTORS, CODED, FROZEN, FROZEN_VECTORS };

/* Returns true for biases, of which there may be one for each expert. */
static bool is_bias(const char *name)
{
    static const char end[] = ".bias";
    size_t length = name ? strlen(name) : 0;
    return length >= sizeof end - 1 && strcmp(name + length - (sizeof end - 1), end) == 0;
}

/* Returns the part of a group to which a parameter belongs. For inference no parameter counts as frozen.
 * Blocks without backward have the order of trained ones, so that buffers, which both use, have the same gaps. */
static enum place place_of(const struct ah_cut *cut, const struct ah_value *value, int number)
{
    bool matrix = value->meta.shape.rank >= 2 && !is_bias(value->name), block = number >= 1 && number <= cut->layers;
    if (!matrix && block && number <= cut->below)
        return FROZEN_VECTORS;
    if (value->frozen && !cut->infers)
        return matrix && block && cut->graph->codes != AH_CODES_NONE ? CODED : FROZEN;
    return matrix ? TRAINED_MATRICES : TRAINED_VECTORS;
}

static int64_t aligned(int64_t elements)
{
    return (elements + AH_PARAM_ALIGN - 1) / AH_PARAM_ALIGN * AH_PARAM_ALIGN;
}

/* Adds the parameters of one part to a group, in the order of recording. Matrices come first, so that weight decay is
 * for one range. */
static int64_t fill_group(struct ah_partition *partition, const struct ah_cut *cut, int number, int *param_of,
                          int64_t offset, enum place place)
{
    const struct ah_graph *graph = cut->graph;
    int64_t placed = partition->groups[number].placed;
    for (size_t v = 0; v < graph->value_count; v++) {
        const struct ah_value *value = &graph->values[v];
        if (cut->owner[v] != number || place_of(cut, value, number) != place)
            continue;
        param_of[v] = partition->param_count;
        int64_t elements = ah__shape_count(&value->meta.shape);
        int64_t kept = place == CODED ? ah__codes_kept(partition, elements) : elements;
        partition->params[partition->param_count++] = (struct ah_param){
            .name = value->name,
            .shape = value->meta.shape,
            .init = value->init,
            .init_std = value->init_std,
            .group = number,
            .offset = offset,
            .kept = kept,
            .place = place < CODED ? offset : placed,
            .adapter = value->adapter,
            .coded = place == CODED,
            .frozen = place >= CODED,
        };
        partition->groups[number].elements += elements;
        offset += place == CODED ? kept : aligned(elements);
        placed += aligned(elements);
    }
    partition->groups[number].placed = placed;
    return aligned(offset);
}

/* Adds the frozen parameters, behind the trained parts of all ranks, so that both kinds are gathered separately; codes
 * first. */
static void fill_frozen(struct ah_partition *partition, const struct ah_cut *cut, struct ah_group *group, int number,
                        int *param_of)
{
    int ranks = ah__step_ranks(partition);
    int64_t from = ranks * ah__part_count(group->trained, ranks);
    group->placed = from;
    int64_t codes = fill_group(partition, cut, number, param_of, from, CODED);
    group->coded = group->placed - from;
    int64_t matrices = fill_group(partition, cut, number, param_of, codes, FROZEN);
    group->count = fill_group(partition, cut, number, param_of, matrices, FROZEN_VECTORS);
    if (group->count > from) {
        group->trained = from;
        partition->frozen = true;
    } else {
        group->count = group->placed = group->trained;
    }
}

static int fill_gaps(struct ah_partition *partition, struct ah_group *group)
{
    struct ah_range *gaps;
    AH_TRY(ah__arena_new(&partition->arena, &gaps, (size_t)group->param_count, sizeof *gaps));
    group->gaps = gaps;
    for (int i = 0; i < group->param_count; i++) {
        const struct ah_param *param = &partition->params[group->first_param + i];
        int64_t end = param->offset + param->kept;
        int64_t next = i + 1 < group->param_count ? param[1].offset : group->count;
        if (end < next)
            gaps[group->gap_count++] = (struct ah_range){end, next};
        if (!param->frozen)
            group->trained_gaps = group->gap_count;
    }
    return AH_OK;
}

static int fill_params(struct ah_partition *partition, const struct ah_cut *cut, int *first_param, int *param_of)
{
    partition->group_count = partition->layers + 2;
    AH_TRY(ah__arena_new(&partition->arena, &partition->params, cut->graph->value_count, sizeof *partition->params));
    AH_TRY(ah__arena_new(&partition->arena, &partition->groups, (size_t)partition->group_count,
                         sizeof *partition->groups));
    for (int g = 0; g < partition->group_count; g++) {
        struct ah_group *group = &partition->groups[g];
        first_param[g] = group->first_param = partition->param_count;
        group->decayed = fill_group(partition, cut, g, param_of, 0, TRAINED_MATRICES);
        group->trained = fill_group(partition, cut, g, param_of, group->decayed, TRAINED_VECTORS);
        fill_frozen(partition, cut, group, g, param_of);
        group->param_count = partition->param_count - group->first_param;
        AH_TRY(fill_gaps(partition, group));
    }
    for (size_t v = 0; v < cut->graph->value_count; v++)
        param_of[v] = param_of[cut->graph->values[v].whole];
    for (int i = 0; i < partition->param_count; i++)
        AH_TRY(ah__arena_strdup(&partition->arena, &partition->params[i].name, partition->params[i].name));
    return AH_OK;
}

/* ---- signature -------------------------------------------------------------------------------------------------- */

static uint64_t hash_ints(const int64_t *values, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        seed = ah__hash_int((uint64_t)values[i], seed);
    return seed;
}

static uint64_t hash_shape(const struct ah_shape *shape, uint64_t seed)
{
    return hash_ints(shape->dim, (size_t)shape->rank, ah__hash_int((uint64_t)shape->rank, seed));
}

static uint64_t hash_operand(const struct ah_operand *operand, uint64_t seed)
{
    const int64_t values[] = {operand->space, operand->offset, operand->meta.dtype};
    return hash_shape(&operand->meta.shape, hash_ints(values, AH_LENGTH(values), seed));
}

static uint64_t hash_program(const struct ah_program *program, uint64_t seed)
{
    for (int i = 0; i < program->count; i++) {
        const struct ah_call *call = &program->calls[i];
        seed = ah__attr_hash(&call->attr, ah__hash_int((uint64_t)call->op, seed));
        for (int j = 0; j < AH_OP_MAX_INPUTS; j++)
            seed = hash_operand(&call->in[j], seed);
        for (int j = 0; j < AH_OP_MAX_OUTPUTS; j++)
            seed = hash_operand(&call->out[j], seed);
    }
    return ah__hash_int((uint64_t)program->work_bytes, seed);
}

static uint64_t hash_code(const struct ah_code *code, uint64_t seed)
{
    for (int i = 0; i < AH_PROGRAM_COUNT; i++)
        seed = hash_program(&code->program[i], seed);
    return hash_operand(&code->logits, seed);
}

/* Hashes a further kind of blocks: their number from each partition on, and their programs. */
static uint64_t hash_further(const struct ah_partition *partition, int class, uint64_t hash)
{
    const int *from = partition->blocks_from[class];
    for (int number = 0; from[1] > 0 && number < partition->layers + 2; number++)
        hash = ah__hash_int((uint64_t)from[number], hash);
    return from[1] > 0 ? hash_code(&partition->code[class], hash) : hash;
}

static uint64_t signature(const struct ah_partition *partition, uint64_t config_hash)
{
    const int64_t values[] = {partition->layers,      partition->batch,       partition->seq,
                              partition->vocab,       partition->compute,     partition->step.clips,
                              partition->step.infers, partition->step.logits, ah__micro_batches(partition)};
    uint64_t hash = hash_ints(values, AH_LENGTH(values), ah__hash_text(ah_version(), config_hash));
    if (ah__step_ranks(partition) > 1)
        hash = ah__hash_int((uint64_t)ah__step_ranks(partition), hash);
    if (partition->step.moments != AH_F32)
        hash = ah__hash_int((uint64_t)partition->step.moments, ah__hash_text("moments", hash));
    if (ah__has_rest(partition))
        hash = ah__hash_text("planes", hash); /* differs from signatures of versions without planes */
    if (partition->step.master != AH_F32)
        hash = ah__hash_int((uint64_t)partition->step.master, ah__hash_text("master", hash));
    for (int i = 0; i < partition->param_count; i++) {
        const struct ah_param *param = &partition->params[i];
        if (param->frozen)
            hash = ah__hash_text("frozen", hash);
        if (param->coded)
            hash = ah__hash_int((uint64_t)partition->codes, hash);
        const int64_t place[] = {param->group, param->offset};
        hash = hash_ints(place, AH_LENGTH(place), hash_shape(&param->shape, ah__hash_text(param->name, hash)));
    }
    for (int i = 0; i < AH_CLASS_COUNT; i++)
        hash = hash_code(&partition->code[i], hash);
    if (partition->frozen_blocks > 0)
        hash = ah__hash_int((uint64_t)partition->frozen_blocks, ah__hash_text("frozen blocks", hash));
    for (int class = AH_CLASS_COUNT; class < partition->class_count; class ++)
        hash = hash_further(partition, class, hash);
    return hash;
}

/* ---- the partition --------------------------------------------------------------------------------------------- */

static int compile_code(struct ah_code *code, struct ah_partition *partition, const struct ah_cut *cut, int number,
                        const int *param_of)
{
    struct ah_section section;
    int status = ah__section_init(&section, cut, number);
    if (status == AH_OK)
        status = ah__code_compile(code, partition, &section, number, param_of);
    ah__section_fini(&section);
    return status;
}

/* Checks that a kind of blocks uses the same memory as the others, and raises the scratch of each program in *most. */
static int match(struct ah_code *most, const struct ah_code *code)
{
    if (most->saved_bytes != code->saved_bytes || most->kept_bytes != code->kept_bytes ||
        most->cache_bytes != code->cache_bytes)
        return ah__fail(AH_EINTERNAL, "two kinds of blocks save %lld and %lld bytes", (long long)most->saved_bytes,
                        (long long)code->saved_bytes);
    for (int i = 0; i < AH_PROGRAM_COUNT; i++)
        if (code->program[i].work_bytes > most->program[i].work_bytes)
            most->program[i].work_bytes = code->program[i].work_bytes;
    return AH_OK;
}

static int count_blocks(struct ah_partition *partition)
{
    for (int class = AH_CLASS_COUNT; class < partition->class_count; class ++) {
        int *from;
        AH_TRY(ah__arena_new(&partition->arena, &from, (size_t)partition->layers + 3, sizeof *from));
        for (int number = partition->layers + 1; number >= 0; number--)
            from[number] = from[number + 1] + (partition->class_of[number] == class);
        partition->blocks_from[class] = from;
    }
    return AH_OK;
}

/* Compiles the first block of each class. */
static int compile_blocks(struct ah_partition *partition, const struct ah_cut *cut, const int *param_of)
{
    struct ah_code *blocks = &partition->code[AH_CLASS_BLOCK];
    for (int number = 1; number <= partition->layers; number++) {
        struct ah_code *code = &partition->code[partition->class_of[number]];
        if (code->program[AH_PROGRAM_FORWARD].count > 0)
            continue;
        AH_TRY(compile_code(code, partition, cut, number, param_of));
        if (number > partition->frozen_blocks)
            AH_TRY(match(blocks, code));
    }
    for (int class = AH_CLASS_COUNT; class < partition->class_count; class ++)
        for (int i = 0; partition->like[class] == class && i < AH_PROGRAM_COUNT; i++)
            partition->code[class].program[i].work_bytes = blocks->program[i].work_bytes;
    return AH_OK;
}

static int compile_all(struct ah_partition *partition, const struct ah_cut *cut, const int *first_param,
                       const int *param_of)
{
    uint8_t *class_of;
    AH_TRY(ah__arena_new(&partition->arena, &class_of, (size_t)partition->group_count, 1));
    AH_TRY(ah__cut_classes(partition, class_of, cut, first_param, param_of));
    partition->class_of = class_of;
    AH_TRY(count_blocks(partition));
    AH_TRY(compile_code(&partition->code[AH_CLASS_EMBEDDING], partition, cut, 0, param_of));
    AH_TRY(compile_blocks(partition, cut, param_of));
    return compile_code(&partition->code[AH_CLASS_HEAD], partition, cut, partition->layers + 1, param_of);
}

static void describe(struct ah_partition *partition, const struct ah_cut *cut)
{
    const struct ah_graph *graph = cut->graph;
    const struct ah_shape *tokens = &graph->values[graph->tokens].meta.shape;
    const struct ah_node *loss = &graph->nodes[graph->values[graph->loss].producer];
    const struct ah_meta loss_in[] = {graph->values[loss->in[0]].meta, graph->values[loss->in[1]].meta};
    partition->compute = graph->compute;
    partition->codes = cut->infers ? AH_CODES_NONE : graph->codes;
    partition->packed = graph->positions >= 0;
    partition->layers = cut->layers;
    partition->frozen_blocks = cut->below;
    partition->batch = tokens->dim[0];
    partition->seq = tokens->dim[1];
    partition->vocab = ah__op_table[loss->op]->classes(loss_in);
    partition->shared_group = cut->shared ? 0 : -1;
}

static void add_flops(struct ah_partition *partition)
{
    int times = ah__micro_batches(partition);
    for (int number = 0; number < partition->layers + 2; number++) {
        const struct ah_code *code = ah__code_of(partition, number);
        partition->flops_forward += times * code->program[AH_PROGRAM_FORWARD].flops;
        partition->flops_backward += times * code->program[AH_PROGRAM_BACKWARD].flops;
    }
}

const char *ah__partition_types(char text[AH_PARTITION_TYPES_SIZE], const struct ah_partition *partition)
{
    char trained[32], below[32] = "";
    const char *codes = ah__codes_word(partition->codes);
    ah_count_format(trained, sizeof trained, ah__partition_trained(partition));
    if (partition->frozen_blocks)
        ah__snprintf(below, sizeof below, " above %d frozen block%s", partition->frozen_blocks,
                     partition->frozen_blocks > 1 ? "s" : "");
    ah__snprintf(text, AH_PARTITION_TYPES_SIZE, "%s%s%s%s%s%s%s", ah__dtype_word(partition->compute),
                 partition->frozen ? ", " : "", partition->frozen ? trained : "", partition->frozen ? " trained" : "",
                 below, codes ? " beside " : "", codes ? codes : "");
    return text;
}

static int note_below(struct ah_partition *partition)
{
    char text[160], blocks[32];
    if (partition->frozen_blocks == 0)
        return AH_OK;
    if (partition->frozen_blocks == 1)
        ah__snprintf(blocks, sizeof blocks, "block 1 is");
    else
        ah__snprintf(blocks, sizeof blocks, "blocks 1-%d are", partition->frozen_blocks);
    ah__snprintf(text, sizeof text, "%s frozen as the embedding is: backward ends above, nothing is kept there",
                 blocks);
    return ah__arena_strdup(&partition->arena, &partition->note, text);
}

static int check_frozen(const struct ah_partition *partition)
{
    return partition->step.infers || ah__partition_trained(partition) > 0
               ? AH_OK
               : ah__fail(AH_EINPUT, "step: found all parameters frozen, expected some to train");
}

static int fill(struct ah_partition *partition, struct ah_cut *cut)
{
    int *param_of, *first_param;
    AH_TRY(ah__arena_new(&cut->arena, &param_of, cut->graph->value_count, sizeof *param_of));
    AH_TRY(ah__arena_new(&cut->arena, &first_param, (size_t)cut->layers + 2, sizeof *first_param));
    describe(partition, cut);
    AH_TRY(fill_params(partition, cut, first_param, param_of));
    AH_TRY(check_frozen(partition));
    AH_TRY(note_below(partition));
    AH_TRY(compile_all(partition, cut, first_param, param_of));
    add_flops(partition);
    partition->signature = signature(partition, cut->graph->config_hash);
    return AH_OK;
}

static int build(struct ah_partition *partition, const struct ah_graph *graph)
{
    struct ah_cut cut;
    int status = ah__cut_init(&cut, graph, partition->step.infers);
    cut.scaled = ah__step_scaled(partition);
    if (status == AH_OK)
        status = fill(partition, &cut);
    ah__cut_fini(&cut);
    return status;
}

static int check_step(const struct ah_step_options *step, enum ah_dtype compute)
{
    if (step->micro_batches < 0)
        return ah__fail(AH_EINPUT, "step: found %d micro-batches, expected at least 1", step->micro_batches);
    if (step->infers && step->micro_batches > 1)
        return ah__fail(AH_EINPUT, "step: found %d micro-batches, expected one where nothing is learned",
                        step->micro_batches);
    if (step->world_size < 0 || (step->infers && step->world_size > 1))
        return ah__fail(AH_EINPUT, "step: found %d ranks, expected %s", step->world_size,
                        step->infers ? "one where nothing is learned" : "at least 1");
    if (!ah__state_format(step->moments))
        return ah__fail(AH_EINPUT, "step: found moments in %s, expected F32, BF16 or U8",
                        ah__dtype_name(step->moments));
    if (step->master != AH_F32 && step->master != compute)
        return ah__fail(AH_EINPUT, "step: found masters in %s, expected F32 or %s, the compute dtype",
                        ah__dtype_name(step->master), ah__dtype_name(compute));
    return AH_OK;
}

int ah_partition_new(struct ah_partition **out, const struct ah_graph *graph, const struct ah_step_options *options)
{
    if (options)
        AH_TRY(check_step(options, graph->compute));
    if (graph->cache && !(options && options->infers))
        return ah__fail(AH_EINPUT, "step: found a graph that keeps keys and values, expected one to learn: only "
                                   "inference keeps them");
    if (!graph->finished)
        return ah__fail(AH_EINPUT, "%s",
                        graph->message ? graph->message : "the graph is not closed by ah_graph_finish()");
    struct ah_partition *partition;
    AH_TRY(ah__new(&partition, 1, sizeof *partition));
    if (options)
        partition->step = *options;
    int status = build(partition, graph);
    if (status == AH_OK)
        *out = partition;
    else
        ah_partition_free(partition);
    return status;
}

void ah_partition_free(struct ah_partition *partition)
{
    if (!partition)
        return;
    ah__arena_free(&partition->arena);
    ah__free(partition);
}

int64_t ah__partition_work_bytes(const struct ah_partition *partition)
{
    int64_t most = 0;
    for (int class = 0; class < AH_CLASS_COUNT; class ++) {
        const struct ah_code *code = &partition->code[class];
        int64_t bytes = ah__code_work_bytes(code), infer = code->program[AH_PROGRAM_INFER].work_bytes;
        bytes = bytes > infer ? bytes : infer;
        most = most > bytes ? most : bytes;
    }
    return most;
}
