#include "graph/tuning.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char weight_suffix[] = ".weight";

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* Splits `text` at commas; spaces around a name do not count. */
static int names_take(struct ah_graph_names *out, struct ah_graph *graph, const char *text)
{
    char *rest;
    size_t most = 1;
    for (const char *at = text; *at; at++)
        most += *at == ',';
    AH_TRY(ah__arena_new(&graph->arena, &out->name, most, sizeof *out->name));
    AH_TRY(ah__arena_new(&graph->arena, &out->found, most, sizeof *out->found));
    AH_TRY(ah__arena_new(&graph->arena, &rest, strlen(text) + 1, 1));
    strcpy(rest, text);
    for (char *name; (name = strsep(&rest, ","));) {
        name += strspn(name, " ");
        size_t length = strlen(name);
        while (length && name[length - 1] == ' ')
            name[--length] = 0;
        if (length)
            out->name[out->count++] = name;
    }
    return AH_OK;
}

const char *ah__graph_module(const char *weight, size_t *length)
{
    size_t all = strlen(weight), suffix = strlen(weight_suffix);
    if (all > suffix && strcmp(weight + all - suffix, weight_suffix) == 0)
        all -= suffix;
    size_t first = all;
    while (first > 0 && weight[first - 1] != '.')
        first--;
    *length = all - first;
    return weight + first;
}

/* Returns the last part of a module's name without the mark that tells how files have it (io/stack.h), and its
 * length. */
static const char *plain_module(const char *weight, size_t *length)
{
    const char *module = ah__graph_module(weight, length);
    size_t before = strcspn(module, "^");
    *length = before < *length ? before : *length;
    return module;
}

/* Returns true if the module's name ends in `target`, one or more whole parts between dots. */
static bool is_target(const char *weight, const char *target)
{
    size_t length, asked = strlen(target);
    const char *module = plain_module(weight, &length), *end = module + length;
    return (size_t)(end - weight) >= asked && strncmp(end - asked, target, asked) == 0 &&
           ((size_t)(end - weight) == asked || end[-(ptrdiff_t)asked - 1] == '.');
}

/* Notes the last part of a linear layer's name, for the message about a target that no layer has. */
static int module_note(struct ah_graph *graph, const char *weight)
{
    size_t length;
    const char *module = plain_module(weight, &length);
    for (size_t i = 0; i < graph->linear_count; i++)
        if (strlen(graph->linears[i]) == length && strncmp(graph->linears[i], module, length) == 0)
            return AH_OK;
    AH_TRY(ah__grow(&graph->linears, &graph->linear_capacity, graph->linear_count + 1, sizeof *graph->linears));
    char *name;
    AH_TRY(ah__arena_new(&graph->arena, &name, length + 1, 1));
    memcpy(name, module, length);
    graph->linears[graph->linear_count++] = name;
    return AH_OK;
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static int check(const struct ah_tuning *tuning)
{
    if (tuning->lora_rank < 0)
        return ah__fail(AH_EINPUT, "lora_rank: found %d, expected at least 1", tuning->lora_rank);
    if (tuning->lora_rank && !(isfinite(tuning->lora_alpha) && tuning->lora_alpha >= 0))
        return ah__fail(AH_EINPUT, "lora_alpha: found %g, expected a number above 0", tuning->lora_alpha);
    if (!tuning->lora_rank && (tuning->lora_targets || tuning->lora_alpha != 0 || tuning->lora_rslora))
        return ah__fail(AH_EINPUT, "lora_rank: found nothing, expected it beside other settings of adapters");
    if (!tuning->lora_rank && tuning->frozen)
        return ah__fail(AH_EINPUT, "frozen: found '%.40s' without adapters, expected lora_rank beside it",
                        tuning->frozen);
    return AH_OK;
}

int ah__graph_tune(struct ah_graph *graph, const struct ah_tuning *tuning)
{
    AH_TRY(check(tuning));
    AH_TRY(ah__codes_parse(&graph->codes, tuning->frozen));
    if (tuning->freeze)
        AH_TRY(names_take(&graph->freeze, graph, tuning->freeze));
    graph->lora_rank = tuning->lora_rank;
    if (!tuning->lora_rank)
        return AH_OK;
    double rank = tuning->lora_rank, alpha = tuning->lora_alpha > 0 ? tuning->lora_alpha : rank;
    graph->lora_scale = (float)(alpha / (tuning->lora_rslora ? sqrt(rank) : rank));
    const char *targets = tuning->lora_targets ? tuning->lora_targets : AH_LORA_ALL;
    graph->lora_experts = strcmp(targets, AH_LORA_EVERY) == 0;
    if (graph->lora_experts || strcmp(targets, AH_LORA_ALL) == 0)
        return AH_OK;
    AH_TRY(names_take(&graph->lora_targets, graph, targets));
    return graph->lora_targets.count
               ? AH_OK
               : ah__fail(AH_EINPUT, "lora_targets: found '%.40s', expected names of linear layers", targets);
}

/* Returns the number of blocks recorded so far. Blocks are top-level scopes NAME.0, NAME.1, ... */
static int blocks_count(const struct ah_graph *graph)
{
    int count = 0;
    for (size_t i = 0; i < graph->scope_count; i++) {
        int number = graph->scopes[i].parent < 0 ? ah__scope_number(graph->scopes[i].name, NULL) : -1;
        count = number >= count ? number + 1 : count;
    }
    return count;
}

/* Returns the part that is being recorded: "embedding", "blocks" or "head". *block receives the block's number from 1,
 * or 0 outside the blocks. */
static const char *part_of(const struct ah_graph *graph, int *block)
{
    int top = ah__graph_top_scope(graph, graph->current_scope);
    *block = top < 0 ? 0 : ah__scope_number(graph->scopes[top].name, NULL) + 1;
    return *block > 0 ? "blocks" : blocks_count(graph) > 0 ? "head" : "embedding";
}

/* Parses "blocks:8" or "blocks:1-8", counted from 1. Returns false for any other name. */
static bool is_range(const char *name, int *first, int *last)
{
    int one = 0, both = 0;
    if (strspn(name, "blocks:-0123456789") < strlen(name))
        return false;
    if (sscanf(name, "blocks:%9d%n-%9d%n", first, &one, last, &both) == 1)
        *last = *first;
    int used = both > 0 ? both : one;
    return used > 0 && !name[used] && *first >= 1 && *last >= *first;
}

static bool is_part(const char *name, const char *part, int block)
{
    int first, last;
    return strcmp(name, part) == 0 || (block > 0 && is_range(name, &first, &last) && block >= first && block <= last);
}

bool ah__graph_freezes(struct ah_graph *graph, const char *name)
{
    bool frozen = graph->lora_rank > 0;
    int block = 0;
    const char *part = graph->freeze.count ? part_of(graph, &block) : "";
    for (size_t i = 0; i < graph->freeze.count; i++)
        if (fnmatch(graph->freeze.name[i], name, 0) == 0 || is_part(graph->freeze.name[i], part, block))
            graph->freeze.found[i] = frozen = true;
    return frozen;
}

int ah__graph_adapts(bool *out, struct ah_graph *graph, const char *weight, bool all)
{
    struct ah_graph_names *targets = &graph->lora_targets;
    *out = (all || graph->lora_experts) && targets->count == 0;
    for (size_t i = 0; i < targets->count; i++)
        if (is_target(weight, targets->name[i]))
            targets->found[i] = *out = true;
    return module_note(graph, weight);
}

/* Returns true if a router of experts has the target's name. */
static bool is_router(const struct ah_graph *graph, const char *target)
{
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct ah_node *node = &graph->nodes[i];
        int producer = node->op == AH_OP_ROUTE ? graph->values[node->in[0]].producer : -1;
        int weight = producer >= 0 ? graph->nodes[producer].in[1] : -1;
        if (weight >= 0 && graph->values[weight].name && is_target(graph->values[weight].name, target))
            return true;
    }
    return false;
}

static int fail_target(const struct ah_graph *graph, const char *target)
{
    char list[256] = "";
    for (size_t i = 0, used = 0; i < graph->linear_count; i++) {
        int more = snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", graph->linears[i]);
        if (more < 0 || (size_t)more >= sizeof list - used)
            break;
        used += (size_t)more;
    }
    return ah__fail(AH_EINPUT, "lora_targets: found '%.80s', %sexpected linear layers of the model's blocks: %s",
                    target, is_router(graph, target) ? "a router of experts, which has no adapter; " : "", list);
}

/* Checks that the model has all blocks of "blocks:8" or "blocks:1-8". Other names pass. */
static int check_range(const struct ah_graph *graph, const char *name)
{
    static const char word[] = "blocks:";
    int first, last, count = blocks_count(graph);
    if (strncmp(name, word, sizeof word - 1) != 0)
        return AH_OK;
    if (graph->lora_rank > 0)
        return ah__fail(AH_EINPUT, "freeze: found '%.80s' beside adapters, which are of all blocks alike", name);
    if (is_range(name, &first, &last) && last <= count)
        return AH_OK;
    return ah__fail(AH_EINPUT, "freeze: found '%.80s', expected blocks:FIRST-LAST within blocks:1-%d", name, count);
}

int ah__graph_tuning_check(const struct ah_graph *graph)
{
    for (size_t i = 0; i < graph->freeze.count; i++)
        AH_TRY(check_range(graph, graph->freeze.name[i]));
    for (size_t i = 0; i < graph->freeze.count; i++)
        if (!graph->freeze.found[i])
            return ah__fail(
                AH_EINPUT,
                "freeze: found '%.80s', which no parameter is called; expected embedding, blocks, blocks:1-2, "
                "head or names like '%s'",
                graph->freeze.name[i], graph->first_param ? graph->first_param : "");
    for (size_t i = 0; i < graph->lora_targets.count; i++)
        if (!graph->lora_targets.found[i])
            return fail_target(graph, graph->lora_targets.name[i]);
    if (graph->lora_rank && !graph->linear_count)
        return ah__fail(AH_EINPUT, "lora_rank: found a model without linear layers, expected some to adapt");
    return AH_OK;
}
