/* Advice for a step that was refused: changes of its options that make it fit, the smallest first, and the speed with
 * the first that does. */
#include <inttypes.h>
#include <string.h>

#include "dev/host/states.h"
#include "plan/search.h"
#include "session/session.h"

enum { LORA_RANK = 16 };

/* A refused step. Changes start from it. */
struct refused {
    const struct ah_session *session;
    struct ah_micro_batch_options options; /* the step, with any number of passes */
    int64_t size;                          /* size of micro-batches: as chosen, or the smallest */
};

/* A change that is tried. */
struct change {
    struct ah_micro_batch_options options;
    int64_t size;
    char text[96];
};

/* Sets *out to true if a step fits. An option that the model or the device does not have does not fit either. */
static int fits(bool *out, const struct ah_micro_batch_options *options, int64_t size)
{
    int status = ah_step_fits(out, options, size);
    *out = status == AH_OK && *out;
    return status == AH_EINPUT ? AH_OK : status;
}

static void change_begin(struct change *change, const struct refused *refused)
{
    *change = (struct change){.options = refused->options, .size = refused->size};
}

/* Tells whether the session's plan is to have so many passes and is open otherwise. */
static bool fixes_passes(const struct ah_session *session)
{
    return ah_plan_is_open(session->options.plan) && ah__plan_passes_given(session->options.plan) > 0;
}

static int try_passes(bool *found, struct change *change, const struct refused *refused)
{
    change_begin(change, refused);
    snprintf(change->text, sizeof change->text, "another number of passes");
    return fixes_passes(refused->session) ? fits(found, &change->options, change->size) : AH_OK;
}

/* Tries smaller micro-batches, the largest first. */
static int try_micro_batch(bool *found, struct change *change, const struct refused *refused)
{
    change_begin(change, refused);
    for (int64_t smaller = refused->size - 1; smaller > 0 && !*found; smaller--) {
        if (refused->options.batch % smaller)
            continue;
        change->size = smaller;
        AH_TRY(fits(found, &change->options, smaller));
    }
    snprintf(change->text, sizeof change->text, "--micro-batch %" PRId64, change->size);
    return AH_OK;
}

/* Finds the most sequences, in micro-batches of `size`, that fit and are fewer than now, by bisection: more sequences
 * keep more activations until backward. */
static int try_sequences_of(bool *found, struct change *change, const struct refused *refused, int64_t size)
{
    int64_t fit = 0, too_many = refused->options.batch / size;
    change_begin(change, refused);
    change->size = size;
    while (too_many - fit > 1) {
        int64_t count = fit + (too_many - fit) / 2;
        bool fitting = false;
        change->options.batch = count * size;
        AH_TRY(fits(&fitting, &change->options, size));
        fit = fitting ? count : fit;
        too_many = fitting ? too_many : count;
    }
    *found = fit > 0;
    change->options.batch = fit * size;
    return AH_OK;
}

/* Tries fewer sequences in micro-batches of the same size, else of size 1. A step of one micro-batch stays one. */
static int try_sequences(bool *found, struct change *change, const struct refused *refused)
{
    int64_t now = refused->size;
    AH_TRY(try_sequences_of(found, change, refused, now));
    if (!*found && now > 1)
        AH_TRY(try_sequences_of(found, change, refused, 1));
    snprintf(change->text, sizeof change->text, "--batch %" PRId64 "%s",
             change->options.batch * refused->session->info.world_size, change->size == now ? "" : " --micro-batch 1");
    return AH_OK;
}

static bool is_narrower(enum ah_dtype dtype, enum ah_dtype than)
{
    return ah__state_format(dtype) && ah__state_bytes(dtype, AH_PARAM_ALIGN) < ah__state_bytes(than, AH_PARAM_ALIGN);
}

/* Tries narrower moments, then narrower masters with them. Formats are narrower in the order of their dtypes. */
static int try_states(bool *found, struct change *change, const struct refused *refused)
{
    const struct ah_step_options *now = &refused->options.step;
    bool masters = refused->options.compute == AH_BF16 && is_narrower(AH_BF16, now->master);
    for (int master = 0; master <= masters; master++)
        for (enum ah_dtype to = now->moments; to < AH_DTYPE_COUNT && !*found; to++) {
            bool moments = is_narrower(to, now->moments);
            if (!moments && (!master || to != now->moments))
                continue;
            change_begin(change, refused);
            change->options.step.master = master ? AH_BF16 : now->master;
            change->options.step.moments = to;
            snprintf(change->text, sizeof change->text, "%s%s%s%s", master ? "--master bf16" : "",
                     master && moments ? " " : "", moments ? "--moments " : "", moments ? ah__dtype_word(to) : "");
            AH_TRY(fits(found, &change->options, change->size));
        }
    return AH_OK;
}

/* Tries adapters if nothing is frozen yet, and frozen matrices in codes with them; not mxfp4, which is for models that
 * were made in it and hardly smaller than nf4. */
static int try_adapters(bool *found, struct change *change, const struct refused *refused)
{
    static const char *const codes[] = {NULL, "int8", "nf4"};
    const struct ah_tuning *now = &refused->options.tuning;
    size_t had = now->frozen ? AH_LENGTH(codes) : 0;
    for (size_t i = 1; now->frozen && i < AH_LENGTH(codes); i++)
        had = strcmp(codes[i], now->frozen) == 0 ? i : had;
    for (size_t i = now->lora_rank ? had + 1 : had; i < AH_LENGTH(codes) && !now->freeze && !*found; i++) {
        change_begin(change, refused);
        struct ah_tuning *tuning = &change->options.tuning;
        tuning->lora_rank = now->lora_rank ? now->lora_rank : LORA_RANK;
        tuning->frozen = codes[i];
        snprintf(change->text, sizeof change->text, "%s%s%s%s", now->lora_rank ? "" : "--lora-rank 16",
                 !now->lora_rank && codes[i] ? " " : "", codes[i] ? "--frozen " : "", codes[i] ? codes[i] : "");
        AH_TRY(fits(found, &change->options, change->size));
    }
    return AH_OK;
}

static int find(bool *found, struct change *change, const struct refused *refused)
{
    static int (*const tries[])(bool *found, struct change *change, const struct refused *refused) = {
        try_passes, try_micro_batch, try_sequences, try_states, try_adapters};
    for (size_t i = 0; i < AH_LENGTH(tries) && !*found; i++)
        AH_TRY(tries[i](found, change, refused));
    return AH_OK;
}

/* Predicts tokens per second with a change, from a session with its options. */
static int speed(double *tokens_per_s, const struct change *change, const struct refused *refused)
{
    struct ah_session *session;
    struct ah_session_options options = refused->session->options;
    const int64_t ranks = refused->session->info.world_size;
    options.model = refused->session->model;
    options.batch = change->options.batch * ranks;
    options.micro_batch = change->size;
    options.budget = refused->options.budget;
    options.budget.host_bytes *= ranks;
    options.policy = refused->options.policy;
    options.plan = refused->options.plan;
    options.warm_start = NULL;
    options.fixed_micro_batch = true;
    options.master = ah__dtype_word(change->options.step.master);
    options.moments = ah__dtype_word(change->options.step.moments);
    options.tuning = change->options.tuning;
    AH_TRY(ah_session_open(&session, &options));
    int status = ah_session_reach(session, AH_SESSION_PLAN);
    if (status == AH_OK)
        *tokens_per_s = (double)(options.batch * session->info.seq) / ((double)ah_session_plan(session)->step_ns / 1e9);
    ah_session_close(session);
    return status == AH_EBUDGET || status == AH_EINPUT ? AH_OK : status;
}

int ah_session_advise(struct ah_advice *out, const struct ah_session *session, const struct ah_budget *budget,
                      const char *policy, bool times)
{
    if (!session)
        return ah__fail(AH_EINPUT, "session: found none, expected one that is open");
    struct refused refused = {.session = session,
                              .options = ah__session_step(session),
                              .size = session->info.micro_batch > 0 ? session->info.micro_batch : 1};
    struct change change;
    bool found = false;
    *out = (struct ah_advice){.tokens_per_s = 0};
    refused.options.budget = *budget;
    refused.options.policy = policy ? policy : refused.options.policy;
    if (fixes_passes(session))
        refused.options.plan = NULL;
    if (!(session->dev || session->hardware) || ah__plan_is_file(session->options.plan))
        return AH_OK;
    AH_TRY(find(&found, &change, &refused));
    if (!found)
        return AH_OK;
    const bool passes = fixes_passes(session) && !strstr(change.text, "passes");
    snprintf(out->change, sizeof out->change, "%.70s%s", change.text, passes ? " without --passes" : "");
    return times && session->hardware ? speed(&out->tokens_per_s, &change, &refused) : AH_OK;
}
