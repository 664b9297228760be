/* Finds the spans of a conversation's text that count for the loss. */
#include <math.h>
#include <string.h>

#include "chat/chat_internal.h"

/* A conversation, and the result under construction. */
struct masking {
    const struct ah_prepared *prepared;
    struct ah_chat_masked *out;
    struct ah_chat_piece whole; /* the text of all messages */
};

int ah__train_on_parse(enum ah_train_on *out, const char *word)
{
    static const char *const words[] = {"assistant", "all", "last"};
    *out = AH_TRAIN_ON_ASSISTANT;
    for (size_t i = 0; i < AH_LENGTH(words); i++)
        if (!word || strcmp(words[i], word) == 0) {
            *out = (enum ah_train_on)i;
            return AH_OK;
        }
    return ah__fail(AH_EINPUT, "train_on: found '%s', expected assistant, all or last", word);
}

static int span_add(struct ah_chat_piece *piece, size_t begin, size_t end)
{
    struct ah_text_span *last = piece->span_count ? &piece->spans[piece->span_count - 1] : NULL;
    if (begin >= end)
        return AH_OK;
    if (last && begin <= last->end) {
        last->end = end > last->end ? end : last->end;
        return AH_OK;
    }
    AH_TRY(ah__grow(&piece->spans, &piece->span_room, piece->span_count + 1, sizeof *piece->spans));
    piece->spans[piece->span_count++] = (struct ah_text_span){begin, end};
    return AH_OK;
}

static void piece_free(struct ah_chat_piece *piece)
{
    ah__buf_free(&piece->text);
    ah__free(piece->spans);
    *piece = (struct ah_chat_piece){0};
}

/* Moves the piece into the result. */
static int piece_take(struct ah_chat_masked *out, struct ah_chat_piece *piece)
{
    AH_TRY(ah__grow(&out->pieces, &out->room, out->count + 1, sizeof *out->pieces));
    out->pieces[out->count++] = *piece;
    *piece = (struct ah_chat_piece){0};
    return AH_OK;
}

static bool is_assistant(struct ah_datum message)
{
    const struct ah_datum *role = ah__datum_member(NULL, message, "role");
    return role && ah__datum_is(*role, "assistant");
}

/* Reads a mark of a message: true or 1 trains on the message, false or 0 does not. */
static int mark_read(bool *learned, const struct ah_prepared *prepared, size_t index, const char *key,
                     struct ah_datum mark)
{
    bool truth = mark.kind == AH_DATUM_NONE || ah__datum_true(mark);
    *learned = *learned && truth;
    if (mark.kind == AH_DATUM_NONE ||
        (ah__datum_is_number(mark) && fabs(ah__datum_as_real(mark) - (truth ? 1 : 0)) < 1e-9))
        return AH_OK;
    return ah__fail(AH_EINPUT, "%s: message %zu: %s: found another value, expected 0 or false (not learned), 1 or true",
                    prepared->name, index, key);
}

/* Sets *out to whether the message trains the model: data mark an assistant's turns by these keys (docs/data.md names
 * the formats). */
static int is_weighed(bool *out, const struct ah_prepared *prepared, size_t index)
{
    static const char *const keys[] = {"weight", "train", "training", "loss", "loss_weight"};
    *out = true;
    for (size_t i = 0; i < AH_LENGTH(keys); i++) {
        const struct ah_datum *mark = ah__datum_member(NULL, prepared->messages.list->items[index], keys[i]);
        if (mark)
            AH_TRY(mark_read(out, prepared, index, keys[i], *mark));
    }
    return AH_OK;
}

/* Sets *out if some message from `first` on is an assistant's that does not train the model. */
static int has_unweighed(bool *out, const struct ah_prepared *prepared, size_t first)
{
    const struct ah_datum_list *messages = prepared->messages.list;
    *out = false;
    for (size_t i = first; i < messages->count; i++) {
        bool weighed = true;
        if (is_assistant(messages->items[i]))
            AH_TRY(is_weighed(&weighed, prepared, i));
        *out = *out || !weighed;
    }
    return AH_OK;
}

/* ---- by prefixes ------------------------------------------------------------------------------------------------- */

/* Renders the first `count` messages. */
static int part(struct ah_buf *text, const struct masking *masking, size_t count, bool generation)
{
    struct ah_rendered rendered = {0};
    int status = ah__prepared_render(&rendered, masking->prepared, count, generation);
    if (status == AH_OK) {
        *text = rendered.text;
        rendered.text = (struct ah_buf){0};
    }
    ah__rendered_free(&rendered);
    return status;
}

/* Returns the number of equal bytes at the beginning of two texts, in whole characters. */
static size_t common(const struct ah_buf *a, const struct ah_buf *b)
{
    size_t most = a->length < b->length ? a->length : b->length;
    size_t at = most && memcmp(a->text, b->text, most) == 0 ? most : 0;
    while (at < most && a->text[at] == b->text[at])
        at++;
    while (at && at < a->length && ((unsigned char)a->text[at] & 0xc0) == 0x80)
        at--;
    return at;
}

/* Finds where turn `index` begins in the text `through`, which ends with that turn. A prompt may have text that the
 * turn lacks, such as an opened thought: then both must share at least the text before the prompt. */
static int turn_begin(size_t *begin, const struct masking *masking, size_t index, const struct ah_buf *through)
{
    struct ah_buf prompt = {0}, before = {0};
    int status = part(&prompt, masking, index, true);
    *begin = status == AH_OK ? common(through, &prompt) : 0;
    bool whole = status == AH_OK && *begin == prompt.length;
    if (status == AH_OK && !whole && index)
        status = part(&before, masking, index, false);
    if (status == AH_OK && (*begin < before.length || common(through, &before) < before.length))
        status = ah__fail(AH_EINPUT,
                          "%s: message %zu: found that the chat template does not write it behind its generation "
                          "prompt, expected that, or {%% generation %%} in the template",
                          masking->prepared->name, index);
    ah__buf_free(&prompt);
    ah__buf_free(&before);
    return status;
}

/* Adds the turn as a span of the whole text if that begins with the text of messages 0 .. index; else as a piece of its
 * own. */
static int turn_add(struct masking *masking, size_t index)
{
    struct ah_chat_piece alone = {0};
    size_t begin = 0;
    int status = part(&alone.text, masking, index + 1, false);
    if (status == AH_OK)
        status = turn_begin(&begin, masking, index, &alone.text);
    bool unasked = status == AH_EINPUT && index == 0; /* many templates cannot render a prompt of an empty
                                                       * conversation */
    bool stable = status == AH_OK && common(&masking->whole.text, &alone.text) == alone.text.length;
    if (status == AH_OK)
        status = span_add(stable ? &masking->whole : &alone, begin, alone.text.length);
    if (status == AH_OK && !stable)
        status = piece_take(masking->out, &alone);
    masking->out->turns += !unasked;
    masking->out->apart += !unasked && !stable;
    piece_free(&alone);
    return unasked ? AH_OK : status;
}

static int by_prefixes(struct masking *masking, size_t first)
{
    const struct ah_datum_list *messages = masking->prepared->messages.list;
    for (size_t i = first; i < messages->count; i++) {
        bool weighed = false;
        if (is_assistant(messages->items[i]))
            AH_TRY(is_weighed(&weighed, masking->prepared, i));
        if (weighed)
            AH_TRY(turn_add(masking, i));
    }
    return AH_OK;
}

/* ---- by marks ---------------------------------------------------------------------------------------------------- */

/* Adds the marked spans of message `first` and later messages. The earlier spans are counted in a rendering of the
 * messages before `first`. */
static int by_marks(struct masking *masking, const struct ah_rendered *rendered, size_t first)
{
    struct ah_rendered before = {0};
    int status = first ? ah__prepared_render(&before, masking->prepared, first, false) : AH_OK;
    for (size_t i = before.span_count; status == AH_OK && i < rendered->span_count; i++)
        status = span_add(&masking->whole, rendered->spans[i].begin, rendered->spans[i].end);
    masking->out->by_marks = true;
    masking->out->turns = masking->whole.span_count;
    ah__rendered_free(&before);
    return status;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static int roles_check(const struct ah_prepared *prepared, bool last_only)
{
    const struct ah_datum_list *messages = prepared->messages.list;
    bool any = false, last = messages->count && is_assistant(messages->items[messages->count - 1]);
    for (size_t i = prepared->given; i < messages->count; i++)
        any |= is_assistant(messages->items[i]);
    if (last_only && !last)
        return ah__fail(AH_EINPUT, "%s: found a last message that is no assistant's, expected one to learn from",
                        prepared->name);
    if (!any)
        return ah__fail(AH_EINPUT, "%s: found no message of an assistant, expected one to learn from", prepared->name);
    return AH_OK;
}

/* Finds the spans of the whole text, which masking->whole holds. */
static int spans_find(struct masking *masking, const struct ah_rendered *rendered, enum ah_train_on train_on)
{
    bool last_only = train_on == AH_TRAIN_ON_LAST, unweighed;
    if (train_on == AH_TRAIN_ON_ALL)
        return span_add(&masking->whole, 0, masking->whole.text.length);
    AH_TRY(roles_check(masking->prepared, last_only));
    size_t first = last_only ? masking->prepared->messages.list->count - 1 : masking->prepared->given;
    AH_TRY(has_unweighed(&unweighed, masking->prepared, first));
    if (rendered->span_count && !rendered->spans_hidden && !unweighed) /* marks do not tell which message they are in */
        return by_marks(masking, rendered, first);
    return by_prefixes(masking, first);
}

static int mask(struct masking *masking, enum ah_train_on train_on)
{
    struct ah_rendered rendered = {0};
    int status = ah__prepared_render(&rendered, masking->prepared, masking->prepared->messages.list->count, false);
    if (status == AH_OK) {
        masking->whole.text = rendered.text;
        rendered.text = (struct ah_buf){0};
        status = spans_find(masking, &rendered, train_on);
    }
    ah__rendered_free(&rendered);
    if (status == AH_OK && masking->whole.span_count)
        status = piece_take(masking->out, &masking->whole);
    piece_free(&masking->whole);
    return status;
}

int ah__chat_mask(struct ah_chat_masked *out, const struct ah_chat *chat, const struct ah_conversation *conversation,
                  enum ah_train_on train_on)
{
    struct ah_prepared prepared;
    struct masking masking = {.prepared = &prepared, .out = out};
    int status = ah__prepared_read(&prepared, chat, conversation);
    if (status == AH_OK)
        status = mask(&masking, train_on);
    ah__prepared_free(&prepared);
    return status;
}

void ah__chat_masked_free(struct ah_chat_masked *masked)
{
    for (size_t i = 0; i < masked->count; i++)
        piece_free(&masked->pieces[i]);
    ah__free(masked->pieces);
    *masked = (struct ah_chat_masked){0};
}
