#include "data/corpus.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "data/record_chat.h"
#include "dev/host/pages.h"
#include "source/model_chat.h"

struct loader {
    struct ah_corpus *corpus;
    struct ah_documents *documents;
    const struct ah_tokenizer *tokenizer;
    const struct ah_corpus_chat *how; /* null: conversations are not read */
    const struct ah_chat *chat;       /* opened at the first conversation; null: no template */
    bool chat_sought;
    struct ah_unread unread;
    char unsaid[256]; /* place of the first conversation without an assistant's message to learn; "": there is none */
    int64_t vocab_size, most;
    int64_t free_bytes; /* free memory at the start; INT64_MAX: unknown */
    const volatile int *stop;
};

int32_t ah__document_end(const struct ah_tokenizer *tokenizer)
{
    if (tokenizer->has_eos)
        return tokenizer->eos;
    return tokenizer->has_bos ? tokenizer->bos : tokenizer->text_is_ids ? 0 : -1;
}

int ah__document_end_check(const struct ah_tokenizer *tokenizer, int64_t vocab_size)
{
    int32_t end = ah__document_end(tokenizer);
    if (end < 0)
        return ah__fail(AH_EINPUT,
                        "tokenizer: found no token that ends a text in tokenizer_config.json, special_tokens_map.json, "
                        "generation_config.json or config.json, expected one: --eos TOKEN (eos) names it");
    if (end < vocab_size)
        return AH_OK;
    return ah__fail(AH_EINPUT, "tokenizer: found the document's end %d, expected one below the model's vocab_size %lld",
                    end, (long long)vocab_size);
}

int ah__ids_check(const int32_t *ids, int64_t count, int64_t vocab_size, const char *where)
{
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= vocab_size)
            return ah__fail(AH_EINPUT, "%s: token %lld: found %d, expected one below the model's vocab_size %lld",
                            where, (long long)i, ids[i], (long long)vocab_size);
    return AH_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Checks free memory before the array doubles, and advises a user whose data do not fit. */
static int room_check(const struct loader *loader, int64_t count)
{
    const struct ah_corpus *corpus = loader->corpus;
    const int64_t available = loader->free_bytes;
    if (count <= (int64_t)corpus->room || available == INT64_MAX)
        return AH_OK;
    int64_t bytes = 3 * count * (int64_t)sizeof *corpus->ids; /* the array, and twice as much beside it */
    char found[32], expected[32];
    if (bytes <= available / 2)
        return AH_OK;
    return ah__fail(AH_EINPUT,
                    "%s: found more tokens than %s of memory hold, expected at most %s, half of what is "
                    "free: 'autohete data' makes a token file, which is read from disk",
                    ah__documents_where(loader->documents), ah_size_format(found, sizeof found, bytes / 2),
                    ah_size_format(expected, sizeof expected, available / 2));
}

static int ids_add(struct loader *loader, const int32_t *ids, int64_t count)
{
    struct ah_corpus *corpus = loader->corpus;
    if (count == 0)
        return AH_OK;
    AH_TRY(room_check(loader, corpus->count + count));
    AH_TRY(ah__grow(&corpus->ids, &corpus->room, (size_t)(corpus->count + count), sizeof *ids));
    memcpy(corpus->ids + corpus->count, ids, (size_t)count * sizeof *ids);
    corpus->count += count;
    return AH_OK;
}

/* ---- documents --------------------------------------------------------------------------------------------------- */

static int encode(int32_t **ids, int64_t *count, struct loader *loader, const char *text, size_t length)
{
    const struct ah_tokenizer *tokenizer = loader->tokenizer;
    const char *where = ah__documents_where(loader->documents);
    int32_t *made;
    int status = tokenizer->encode(&made, count, tokenizer, text, length);
    if (status != AH_OK)
        return ah__fail_prefix(status, "%s", where);
    status = ah__ids_check(made, *count, loader->vocab_size, where);
    if (status == AH_OK)
        *ids = made;
    else
        ah__free(made);
    return status;
}

static int text_add(struct loader *loader, const struct ah_document *document)
{
    int32_t *ids;
    int64_t count;
    AH_TRY(encode(&ids, &count, loader, document->text, document->length));
    int status = ids_add(loader, ids, count);
    ah__free(ids);
    return status;
}

/* Encodes a prompt with the tokenizer's template into *with. *lead receives the number of ids that the template puts
 * before the prompt's own, `plain`. */
static int lead_encode(int32_t **with, int64_t *lead, struct loader *loader, const struct ah_document *document,
                       const int32_t *plain, int64_t plain_count)
{
    const struct ah_tokenizer *tokenizer = loader->tokenizer;
    int64_t count;
    int status = tokenizer->encode_prompt(with, &count, tokenizer, document->text, document->length);
    if (status != AH_OK)
        return ah__fail_prefix(status, "%s", ah__documents_where(loader->documents));
    for (*lead = 0; *lead + plain_count <= count; ++*lead)
        if (memcmp(*with + *lead, plain, (size_t)plain_count * sizeof *plain) == 0)
            return ah__ids_check(*with, *lead, loader->vocab_size, "the tokenizer's template");
    *lead = 0;
    return AH_OK;
}

/* Returns the number of equal ids at the start of two arrays. */
static int64_t common(const int32_t *a, int64_t a_count, const int32_t *b, int64_t b_count)
{
    int64_t count = 0;
    while (count < a_count && count < b_count && a[count] == b[count])
        count++;
    return count;
}

/* The ids of one example. Zero-initialised before, freed after. */
struct sequence {
    int32_t *ids;  /* [count] */
    bool *learned; /* [count] */
    int64_t count;
};

static int sequence_new(struct sequence *out, int64_t count)
{
    AH_TRY(ah__new(&out->ids, (size_t)count, sizeof *out->ids));
    AH_TRY(ah__new(&out->learned, (size_t)count, sizeof *out->learned));
    out->count = count;
    return AH_OK;
}

static void sequence_free(struct sequence *sequence)
{
    ah__free(sequence->ids);
    ah__free(sequence->learned);
}

/* Joins what the model sees: the ids that the template puts before a prompt, prompt and completion as one text, and the
 * document's end. */
static int pair_join(struct sequence *out, struct loader *loader, const struct ah_document *document, const char *text,
                     size_t length)
{
    int32_t *prompt = NULL, *whole = NULL, *with = NULL;
    int64_t prompt_count, whole_count, lead = 0;
    int status = encode(&prompt, &prompt_count, loader, text, document->length);
    if (status == AH_OK)
        status = lead_encode(&with, &lead, loader, document, prompt, prompt_count);
    if (status == AH_OK)
        status = encode(&whole, &whole_count, loader, text, length);
    if (status == AH_OK)
        status = sequence_new(out, lead + whole_count + 1);
    if (status == AH_OK) {
        memcpy(out->ids, with, (size_t)lead * sizeof *out->ids);
        memcpy(out->ids + lead, whole, (size_t)whole_count * sizeof *out->ids);
        out->ids[lead + whole_count] = ah__document_end(loader->tokenizer);
        for (int64_t i = lead + common(prompt, prompt_count, whole, whole_count); i < out->count; i++)
            out->learned[i] = true;
    }
    ah__free(prompt);
    ah__free(whole);
    ah__free(with);
    return status;
}

static int pair_read(struct sequence *out, struct loader *loader, const struct ah_document *document)
{
    size_t length = document->length + document->completion_length;
    char *text;
    AH_TRY(ah__new(&text, length + 1, 1));
    memcpy(text, document->text, document->length);
    memcpy(text + document->length, document->completion, document->completion_length);
    int status = pair_join(out, loader, document, text, length);
    ah__free(text);
    return status;
}

/* Takes a record's ids unchanged, without adding a document's end. */
static int ids_read(struct sequence *out, struct loader *loader, const struct ah_document *document)
{
    AH_TRY(ah__ids_check(document->ids, (int64_t)document->id_count, loader->vocab_size,
                         ah__documents_where(loader->documents)));
    AH_TRY(sequence_new(out, (int64_t)document->id_count));
    memcpy(out->ids, document->ids, document->id_count * sizeof *out->ids);
    memcpy(out->learned, document->learned, document->id_count * sizeof *out->learned);
    return AH_OK;
}

/* Returns true if any of the first `length` ids is learned; the first id itself is never a target. */
static bool is_learned(const struct sequence *sequence, int64_t length)
{
    for (int64_t i = 1; i < length; i++)
        if (sequence->learned[i])
            return true;
    return false;
}

/* Adds as many ids of an example as there is room for, or counts an example without learned ids there. */
static int example_add(struct loader *loader, const struct sequence *sequence)
{
    struct ah_corpus *corpus = loader->corpus;
    int64_t most = loader->most + 1, length = sequence->count < most ? sequence->count : most, first = corpus->count;
    if (!is_learned(sequence, length)) {
        *(is_learned(sequence, sequence->count) ? &corpus->left_out : &corpus->unlearned) += 1;
        return AH_OK;
    }
    corpus->cut += sequence->count > most;
    AH_TRY(ids_add(loader, sequence->ids, length));
    AH_TRY(ah__grow(&corpus->learned, &corpus->learned_room, (size_t)corpus->count, sizeof *corpus->learned));
    memcpy(corpus->learned + first, sequence->learned, (size_t)length * sizeof *corpus->learned);
    AH_TRY(ah__grow(&corpus->examples, &corpus->example_room, (size_t)corpus->example_count + 1,
                    sizeof *corpus->examples));
    corpus->examples[corpus->example_count++] = (struct ah_example){first, (int32_t)length};
    return AH_OK;
}

static int example_read(struct loader *loader, const struct ah_document *document)
{
    struct sequence sequence = {0};
    int status = document->kind == AH_DOCUMENT_IDS ? ids_read(&sequence, loader, document)
                                                   : pair_read(&sequence, loader, document);
    if (status == AH_OK)
        status = example_add(loader, &sequence);
    sequence_free(&sequence);
    return status;
}

/* ---- conversations ----------------------------------------------------------------------------------------------- */

/* Opens the chat template, at the first call. */
static int chat_find(struct loader *loader)
{
    if (loader->chat_sought || !loader->how)
        return AH_OK;
    loader->chat_sought = true;
    return ah__model_chat_open(&loader->chat, loader->how->model, loader->how->adapter, loader->how->template_path);
}

/* Finds the number of ids that a text's first `bytes` give. An id with characters on both sides of the boundary counts
 * if `through`. */
static int boundary(int64_t *at, struct loader *loader, const struct ah_buf *text, size_t bytes,
                    const struct sequence *whole, bool through)
{
    int32_t *ids;
    int64_t count;
    AH_TRY(encode(&ids, &count, loader, text->text, bytes));
    *at = common(ids, count, whole->ids, whole->count);
    *at += through && *at < count && *at < whole->count;
    ah__free(ids);
    return AH_OK;
}

/* Encodes rendered text; an id is learned if it has a character of a span. */
static int piece_read(struct sequence *out, struct loader *loader, const struct ah_chat_piece *piece)
{
    AH_TRY(encode(&out->ids, &out->count, loader, piece->text.text, piece->text.length));
    AH_TRY(ah__new(&out->learned, (size_t)out->count, sizeof *out->learned));
    for (size_t i = 0; i < piece->span_count; i++) {
        int64_t begin, end;
        AH_TRY(boundary(&begin, loader, &piece->text, piece->spans[i].begin, out, false));
        AH_TRY(boundary(&end, loader, &piece->text, piece->spans[i].end, out, true));
        for (int64_t k = begin; k < end; k++)
            out->learned[k] = true;
    }
    return AH_OK;
}

static int pieces_add(struct loader *loader, const struct ah_chat_masked *masked)
{
    struct ah_corpus *corpus = loader->corpus;
    corpus->turns += (int64_t)masked->turns;
    corpus->apart += (int64_t)masked->apart;
    corpus->unlearned += masked->count == 0;
    for (size_t i = 0; i < masked->count; i++) {
        struct sequence sequence = {0};
        int status = piece_read(&sequence, loader, &masked->pieces[i]);
        if (status == AH_OK)
            status = example_add(loader, &sequence);
        sequence_free(&sequence);
        AH_TRY(status);
    }
    return AH_OK;
}

/* Returns true if a conversation has no message to learn: data sets have empty conversations, and some that end before
 * an answer. */
static bool says_nothing(const struct loader *loader, const struct ah_document *document)
{
    bool all = loader->how->train_on == AH_TRAIN_ON_ALL, any = false, last = false;
    size_t index = 0;
    const cJSON *message;
    cJSON_ArrayForEach(message, document->messages)
    {
        const char *role = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(message, "role"));
        last = role && strcmp(role, "assistant") == 0;
        any = any || (index++ >= document->given && last);
    }
    return index == 0 || (!all && !(loader->how->train_on == AH_TRAIN_ON_LAST ? last : any));
}

static int chat_add(struct loader *loader, const struct ah_document *document)
{
    /* The date for templates that print one: with today's, the same data would differ tomorrow. */
    static const struct tm day = {
        .tm_year = 124, .tm_mon = 6, .tm_mday = 26, .tm_hour = 12, .tm_wday = 5, .tm_yday = 207};
    struct ah_chat_masked masked = {0};
    struct ah_record record = {0};
    struct ah_conversation conversation = {.now = &day};
    int status =
        ah__record_conversation(&conversation, &record, document, loader->chat, ah__documents_where(loader->documents));
    if (status == AH_OK)
        status = ah__chat_mask(&masked, loader->chat, &conversation, loader->how->train_on);
    if (status == AH_OK)
        status = pieces_add(loader, &masked);
    loader->corpus->templated = true;
    ah__record_free(&record);
    ah__chat_masked_free(&masked);
    return status;
}

static int no_template(const struct loader *loader, const struct ah_document *document)
{
    return ah__fail(AH_EINPUT,
                    "%s: found a conversation (%s), and no chat template with the model, expected one: chat_template "
                    "in tokenizer_config.json, or --chat-template FILE (chat_template)",
                    ah__documents_where(loader->documents), ah__data_format_words[document->form]);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* Renders a conversation by the template. *done is false if there is no template but a layout of its own, as for an
 * instruction. */
static int chat_read(bool *done, struct loader *loader, const struct ah_document *document)
{
    struct ah_corpus *corpus = loader->corpus;
    *done = true;
    if (loader->chat && says_nothing(loader, document)) {
        corpus->unlearned++;
        if (!*loader->unsaid)
            snprintf(loader->unsaid, sizeof loader->unsaid, "%s", ah__documents_where(loader->documents));
        return AH_OK;
    }
    *done = loader->chat;
    if (loader->chat)
        return chat_add(loader, document);
    return document->completion ? AH_OK : no_template(loader, document);
}

/* Reads a record that is not running text. */
static int record_read(struct loader *loader, const struct ah_document *document)
{
    struct ah_corpus *corpus = loader->corpus;
    bool done = false;
    corpus->form = corpus->documents > 1 && corpus->form != document->form ? AH_DATA_AUTO : document->form;
    if (document->kind == AH_DOCUMENT_CHAT)
        AH_TRY(chat_find(loader));
    AH_TRY(ah__unread_add(&loader->unread, document, loader->chat));
    if (document->bad) {
        corpus->bad++;
        corpus->bad_key = document->bad;
        return AH_OK;
    }
    if (document->kind == AH_DOCUMENT_CHAT)
        AH_TRY(chat_read(&done, loader, document));
    if (done)
        return AH_OK;
    if (document->kind != AH_DOCUMENT_IDS)
        AH_TRY(ah__document_end_check(loader->tokenizer, loader->vocab_size));
    return example_read(loader, document);
}

static int load_all(struct loader *loader)
{
    const int32_t end = ah__document_end(loader->tokenizer);
    struct ah_document document;
    bool more;
    for (;;) {
        if (loader->stop && *loader->stop)
            return ah__fail(AH_ESTOP, "stopped while documents were read");
        AH_TRY(ah__documents_next(&more, &document, loader->documents));
        if (!more)
            return AH_OK;
        loader->corpus->documents += document.whole;
        if (document.kind != AH_DOCUMENT_TEXT) {
            AH_TRY(record_read(loader, &document));
            continue;
        }
        AH_TRY(ah__unread_add(&loader->unread, &document, NULL));
        if (!document.alone)
            AH_TRY(ah__document_end_check(loader->tokenizer, loader->vocab_size));
        AH_TRY(text_add(loader, &document));
        if (document.whole && !document.alone)
            AH_TRY(ids_add(loader, &end, 1));
    }
}

/* Hashes ids and the learned mask, so that another template or mask gives another signature. */
static uint64_t learned_signature(const struct ah_corpus *corpus)
{
    uint64_t hash = ah__hash(corpus->ids, (size_t)corpus->count * sizeof *corpus->ids, corpus->signature);
    return ah__hash(corpus->learned, (size_t)corpus->count * sizeof *corpus->learned, hash);
}

int ah__corpus_load(struct ah_corpus *out, const char *const *paths, size_t count,
                    const struct ah_corpus_options *options)
{
    struct ah_corpus corpus = {0};
    struct loader loader = {.corpus = &corpus,
                            .tokenizer = options->tokenizer,
                            .how = options->chat,
                            .vocab_size = options->vocab_size,
                            .most = options->most,
                            .stop = options->stop,
                            .free_bytes = ah__pages_available()};
    AH_TRY(ah__documents_open(&loader.documents, paths, count, options->format));
    int status = load_all(&loader);
    if (status == AH_OK && *loader.unsaid && !corpus.example_count)
        status = ah__fail(AH_EINPUT, "%s: found no message of an assistant%s, expected one to learn from",
                          loader.unsaid, options->chat->train_on == AH_TRAIN_ON_LAST ? " at the end" : "");
    corpus.signature = ah__hash_int(options->tokenizer->signature, ah__documents_signature(loader.documents));
    if (options->tokenizer->end_given)
        corpus.signature = ah__hash_int((uint64_t)options->tokenizer->eos, corpus.signature);
    corpus.bytes = ah__documents_bytes(loader.documents);
    if (status == AH_OK && corpus.templated)
        corpus.signature = learned_signature(&corpus);
    if (status == AH_OK)
        status = ah__unread_text(&corpus.unread, &loader.unread);
    ah__unread_free(&loader.unread);
    ah__documents_close(loader.documents);
    ah__chat_close(loader.chat);
    if (status == AH_OK)
        *out = corpus;
    else
        ah__corpus_free(&corpus);
    return status;
}

void ah__corpus_free(struct ah_corpus *corpus)
{
    ah__free(corpus->ids);
    ah__free(corpus->learned);
    ah__free(corpus->examples);
    ah__free(corpus->unread);
    *corpus = (struct ah_corpus){0};
}
