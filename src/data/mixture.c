#include "data/mixture.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/format.h"
#include "base/hash.h"
#include "data/mixture_parse.h"

enum { CYCLE = 1024 };

struct ah_mixture {
    struct ah_mixture_source *source; /* [count] */
    size_t count;
    double largest, sum;        /* the largest weight; the sum of all in units of it */
    int64_t *first, *val_first; /* [count + 1] first slot of each source in a cycle */
    struct ah_tokens_info info;
};

/* ---- shares ------------------------------------------------------------------------------------------------------ */

/* Computes the sum of all weights in units of the largest, which neither overflows nor underflows. */
static void weights_add(struct ah_mixture *mixture)
{
    mixture->largest = mixture->sum = 0;
    for (size_t i = 0; i < mixture->count; i++)
        if (mixture->source[i].weight > mixture->largest)
            mixture->largest = mixture->source[i].weight;
    for (size_t i = 0; i < mixture->count; i++)
        mixture->sum += mixture->source[i].weight / mixture->largest;
}

/* Returns the exact, fractional number of slots of source i. */
static double slots_wanted(const struct ah_mixture *mixture, size_t i)
{
    return mixture->source[i].weight / mixture->largest / mixture->sum * CYCLE;
}

/* Returns the source that lacks the largest part of a slot. */
static struct ah_mixture_source *largest_remainder(const struct ah_mixture *mixture)
{
    struct ah_mixture_source *found = &mixture->source[0];
    double most = -CYCLE;
    for (size_t i = 0; i < mixture->count; i++) {
        double lacks = slots_wanted(mixture, i) - (double)mixture->source[i].slots;
        if (lacks > most) {
            most = lacks;
            found = &mixture->source[i];
        }
    }
    return found;
}

static int slots_by_weight(struct ah_mixture *mixture)
{
    int64_t left = CYCLE;
    weights_add(mixture);
    for (size_t i = 0; i < mixture->count; i++) {
        mixture->source[i].slots = (int64_t)slots_wanted(mixture, i);
        left -= mixture->source[i].slots;
    }
    for (; left > 0; left--)
        largest_remainder(mixture)->slots++;
    for (size_t i = 0; i < mixture->count; i++)
        if (mixture->source[i].slots == 0)
            return ah__fail(AH_EINPUT, "%s: weight: found %g, %.2g of all, expected at least 1 in %d",
                            mixture->source[i].path, mixture->source[i].weight, slots_wanted(mixture, i) / CYCLE,
                            CYCLE);
    return AH_OK;
}

static int slots_share(struct ah_mixture *mixture)
{
    bool weighted = mixture->source[0].weight > 0;
    AH_TRY(ah__new(&mixture->first, mixture->count + 1, sizeof *mixture->first));
    AH_TRY(ah__new(&mixture->val_first, mixture->count + 1, sizeof *mixture->val_first));
    for (size_t i = 0; i < mixture->count; i++) {
        struct ah_mixture_source *source = &mixture->source[i];
        const struct ah_tokens_info *info = ah__tokens_info(source->tokens);
        if (!weighted)
            source->slots = mixture->count == 1 ? 1 : info->train_windows;
        mixture->first[i + 1] = mixture->first[i] + source->slots;
        mixture->val_first[i + 1] = mixture->val_first[i] + (weighted ? source->slots : info->val_windows);
    }
    return AH_OK;
}

int64_t ah__mixture_cycle(const struct ah_mixture *mixture)
{
    return mixture->first[mixture->count];
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static void info_add(struct ah_tokens_info *sum, const struct ah_tokens_info *info, int64_t slots)
{
    sum->tokens += info->tokens;
    sum->train_tokens += info->train_tokens;
    sum->val_tokens += info->val_tokens;
    sum->train_windows += info->train_windows;
    sum->val_windows += info->val_windows;
    sum->held_out = sum->held_out && info->held_out;
    sum->text = sum->text && info->text;
    sum->documents += info->documents;
    sum->examples += info->examples;
    sum->memory_bytes += info->memory_bytes;
    sum->signature = ah__hash_int((uint64_t)slots, ah__hash_int(info->signature, sum->signature));
    if (strcmp(sum->format, info->format) != 0)
        sum->format = "several";
}

static void info_fill(struct ah_mixture *mixture)
{
    const struct ah_tokens_info *first = ah__tokens_info(mixture->source[0].tokens);
    mixture->info = *first;
    if (mixture->count == 1)
        return;
    mixture->info = (struct ah_tokens_info){
        .held_out = true, .text = true, .format = first->format, .seq = first->seq, .tokenizer = first->tokenizer};
    for (size_t i = 0; i < mixture->count; i++)
        info_add(&mixture->info, ah__tokens_info(mixture->source[i].tokens), mixture->source[i].slots);
}

/* Takes the parsed sources. The weight of a single source is ignored: it is all the data. */
static int sources_take(struct ah_mixture *mixture, struct ah_mixture_items *items)
{
    AH_TRY(ah__new(&mixture->source, items->count, sizeof *mixture->source));
    mixture->count = items->count;
    for (size_t i = 0; i < items->count; i++) {
        mixture->source[i].path = items->item[i].path;
        mixture->source[i].weight = items->count > 1 ? items->item[i].weight : 0;
        items->item[i].path = NULL;
    }
    return mixture->source[0].weight > 0 ? slots_by_weight(mixture) : AH_OK;
}

static int parse(struct ah_mixture *mixture, const char *text)
{
    struct ah_mixture_items items;
    int status = ah__mixture_parse(&items, text);
    if (status == AH_OK)
        status = sources_take(mixture, &items);
    ah__mixture_items_free(&items);
    return status;
}

static int open_all(struct ah_mixture *mixture, const char *text, const struct ah_tokenizer *tokenizer,
                    int64_t vocab_size, const struct ah_tokens_options *options, const struct ah_tokens_known *known,
                    size_t known_count)
{
    struct ah_tokens_options one = *options;
    AH_TRY(parse(mixture, text));
    for (size_t i = 0; i < mixture->count; i++) {
        struct ah_mixture_source *source = &mixture->source[i];
        one.known = i < known_count ? &known[i] : NULL;
        AH_TRY(ah__tokens_open_with(&source->tokens, source->path, tokenizer, vocab_size, &one));
    }
    AH_TRY(slots_share(mixture));
    info_fill(mixture);
    return AH_OK;
}

int ah__mixture_open(struct ah_mixture **out, const char *text, const struct ah_tokenizer *tokenizer,
                     int64_t vocab_size, const struct ah_tokens_options *options, const struct ah_tokens_known *known,
                     size_t known_count)
{
    struct ah_mixture *mixture;
    AH_TRY(ah__new(&mixture, 1, sizeof *mixture));
    int status = open_all(mixture, text, tokenizer, vocab_size, options, known, known_count);
    if (status == AH_OK)
        *out = mixture;
    else
        ah__mixture_close(mixture);
    return status;
}

void ah__mixture_close(struct ah_mixture *mixture)
{
    if (!mixture)
        return;
    for (size_t i = 0; i < mixture->count; i++) {
        ah__tokens_close(mixture->source[i].tokens);
        ah__free(mixture->source[i].path);
    }
    ah__free(mixture->source);
    ah__free(mixture->first);
    ah__free(mixture->val_first);
    ah__free(mixture);
}

/* ---- information ------------------------------------------------------------------------------------------------- */

size_t ah__mixture_count(const struct ah_mixture *mixture)
{
    return mixture->count;
}

const struct ah_mixture_source *ah__mixture_source(const struct ah_mixture *mixture, size_t source)
{
    return &mixture->source[source];
}

const struct ah_tokens_info *ah__mixture_info(const struct ah_mixture *mixture)
{
    return &mixture->info;
}

/* Gives the real path; a pipe, which has none, keeps its name. */
static int path_of(char **out, const struct ah_mixture_source *source)
{
    AH_TRY(ah__path_real(out, source->path));
    return *out ? AH_OK : ah__strdup(out, source->path);
}

/* Adds a weight with the fewest digits that give it back. */
static void weight_add(struct ah_buf *text, double weight)
{
    char digits[40];
    ah__snprintf(digits, sizeof digits, "%.15g", weight);
    if (ah__strtod(digits, NULL) != weight)
        ah__snprintf(digits, sizeof digits, "%.17g", weight);
    ah__buf_printf(text, ":%s", digits);
}

static int text_make(struct ah_buf *text, const struct ah_mixture *mixture)
{
    for (size_t i = 0; i < mixture->count; i++) {
        const struct ah_mixture_source *source = &mixture->source[i];
        char *path;
        AH_TRY(path_of(&path, source));
        ah__buf_printf(text, "%s%s", i ? "," : "", path);
        if (source->weight > 0)
            weight_add(text, source->weight);
        ah__free(path);
    }
    return text->status;
}

static int is_item(bool *same, const struct ah_mixture_item *item, const struct ah_mixture_source *source)
{
    char *path;
    AH_TRY(path_of(&path, source));
    *same = strcmp(item->path, path) == 0 && !(item->weight < source->weight || item->weight > source->weight);
    ah__free(path);
    return AH_OK;
}

/* Checks that the text parses to the same sources: names may contain separators, as "a,b" beside a file "a". */
static int text_check(const char *text, const struct ah_mixture *mixture)
{
    struct ah_mixture_items items;
    int status = ah__mixture_parse(&items, text);
    bool same = status == AH_OK && items.count == mixture->count;
    status = status == AH_EINPUT ? AH_OK : status;
    for (size_t i = 0; i < mixture->count && same && status == AH_OK; i++)
        status = is_item(&same, &items.item[i], &mixture->source[i]);
    ah__mixture_items_free(&items);
    if (status == AH_OK && !same)
        status = ah__fail(AH_EINPUT,
                          "data: found names that together mean other files, '%.300s', expected names without commas "
                          "and colons",
                          text);
    return status;
}

int ah__mixture_text(char **out, const struct ah_mixture *mixture)
{
    struct ah_buf text = {0};
    int status = text_make(&text, mixture);
    if (status == AH_OK)
        status = text_check(text.text, mixture);
    if (status == AH_OK)
        status = ah__strdup(out, text.text);
    ah__buf_free(&text);
    return status;
}

int ah__mixture_marks(struct ah_mixture_mark **out, const struct ah_mixture *mixture)
{
    struct ah_mixture_mark *marks;
    int status = AH_OK;
    AH_TRY(ah__new(&marks, mixture->count, sizeof *marks));
    for (size_t i = 0; status == AH_OK && i < mixture->count; i++) {
        const struct ah_mixture_source *source = &mixture->source[i];
        const struct ah_tokens_info *info = ah__tokens_info(source->tokens);
        marks[i] =
            (struct ah_mixture_mark){.slots = source->slots, .tokens = info->tokens, .signature = info->signature};
        status = path_of(&marks[i].path, source);
    }
    if (status == AH_OK)
        *out = marks;
    else
        ah__mixture_marks_free(marks, mixture->count);
    return status;
}

void ah__mixture_marks_free(struct ah_mixture_mark *marks, size_t count)
{
    for (size_t i = 0; marks && i < count; i++)
        ah__free(marks[i].path);
    ah__free(marks);
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

/* Returns the slot of a cycle's sample. */
static int64_t slot_of(int64_t sample, int64_t cycle, uint64_t turn)
{
    return (int64_t)ah__permute((uint64_t)sample, (uint64_t)cycle, turn);
}

/* Returns the source of a sample; *sample becomes its number among that source's samples. `first`: first slots. */
static size_t place(int64_t *sample, const struct ah_mixture *mixture, const int64_t *first, uint64_t seed)
{
    const int64_t cycle = first[mixture->count];
    size_t source = 0;
    if (mixture->count == 1)
        return 0;
    const uint64_t turn = ah__random_bits(ah__hash_text("mixture", seed), (uint64_t)(*sample / cycle));
    const int64_t slot = slot_of(*sample % cycle, cycle, turn);
    while (slot >= first[source + 1])
        source++;
    /* Without weights a cycle is one epoch of all sources. With weights the source's samples are counted through, so
     * that it has epochs of its own. */
    int64_t own = slot - first[source];
    if (mixture->source[0].weight > 0) {
        own = 0;
        for (int64_t i = 0; i < *sample % cycle; i++) {
            int64_t before = slot_of(i, cycle, turn);
            own += before >= first[source] && before < first[source + 1];
        }
    }
    *sample = *sample / cycle * (first[source + 1] - first[source]) + own;
    return source;
}

/* Returns a source's own seed, so that sources with equally many windows differ in order. */
static uint64_t seed_of(const struct ah_mixture *mixture, size_t source, uint64_t seed)
{
    return mixture->count == 1 ? seed : ah__random_bits(ah__hash_text("source", seed), source);
}

static struct ah_batch row_of(const struct ah_batch *to, int64_t at)
{
    return (struct ah_batch){to->ids + at, to->targets + at, to->positions ? to->positions + at : NULL};
}

int ah__mixture_batch(const struct ah_mixture *mixture, int64_t n, int64_t batch, uint64_t seed,
                      const struct ah_batch *to)
{
    for (int64_t row = 0; row < batch; row++) {
        int64_t sample = n * batch + row;
        size_t source = place(&sample, mixture, mixture->first, seed);
        const struct ah_batch at = row_of(to, row * mixture->info.seq);
        AH_TRY(ah__tokens_batch(mixture->source[source].tokens, sample, 1, seed_of(mixture, source, seed), &at));
    }
    return AH_OK;
}

int ah__mixture_val_batch(const struct ah_mixture *mixture, int64_t n, int64_t batch, const struct ah_batch *to)
{
    for (int64_t row = 0; row < batch; row++) {
        int64_t sample = n * batch + row;
        size_t source = place(&sample, mixture, mixture->val_first, 0);
        const struct ah_batch at = row_of(to, row * mixture->info.seq);
        AH_TRY(ah__tokens_val_batch(mixture->source[source].tokens, sample, 1, &at));
    }
    return AH_OK;
}

int64_t ah__mixture_given(const struct ah_mixture *mixture, size_t source, int64_t samples, uint64_t seed)
{
    if (mixture->count == 1)
        return samples;
    const int64_t cycle = ah__mixture_cycle(mixture);
    int64_t given = samples / cycle * mixture->source[source].slots;
    for (int64_t i = samples / cycle * cycle; i < samples; i++) {
        int64_t sample = i;
        given += place(&sample, mixture, mixture->first, seed) == source;
    }
    return given;
}
