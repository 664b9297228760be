/* ah_talk has a conversation with a model, turn by turn. The chat template renders each prompt whole. The tokens at its
 * beginning that equal the last prompt's have cached keys and values; only the others are run. */
#include <inttypes.h>
#include <string.h>

#include "data/corpus.h"
#include "infer/inference.h"
#include "infer/sample.h"
#include "source/model_chat.h"
#include "tokenizer/utf8.h"

enum { CONTEXT_MOST = 4096, ANSWER_MOST = 512 };

struct ah_talk {
    struct ah_talk_options options;
    struct ah_inference from;
    const struct ah_chat *chat;
    cJSON *messages;
    struct ah_sampler sampler;
    int64_t room, count; /* most ids; ids of the conversation so far */
    int64_t cache;       /* positions of the cache; 0: the model is not started */
    int64_t kept;        /* tokens with cached keys and values, from the first on */
    int32_t *ids;        /* [room] */
    float *logits;       /* [vocab] */
    uint64_t drawn;      /* tokens drawn in all turns */
};

static int message_add(struct ah_talk *talk, const char *role, const char *content)
{
    cJSON *item = cJSON_CreateObject();
    if (item && cJSON_AddStringToObject(item, "role", role) && cJSON_AddStringToObject(item, "content", content) &&
        cJSON_AddItemToArray(talk->messages, item))
        return AH_OK;
    cJSON_Delete(item);
    return ah__fail(AH_ENOMEM, "out of host memory: a message");
}

/* Starts the model, or starts it again, which empties the cache, if the conversation outgrows the length up to which
 * the model rotates positions alike, or becomes shorter than that again. */
static int make_ready(struct ah_talk *talk)
{
    const struct ah_generate_options *options = &talk->options.generate;
    int64_t cache = ah__inference_room(&talk->from, talk->count, talk->room);
    if (cache == talk->cache)
        return AH_OK;
    ah__inference_stop(&talk->from);
    talk->kept = 0;
    talk->cache = 0; /* until the model has started */
    AH_TRY(ah__inference_start_decoding(&talk->from, 1, cache, options->device, options->threads));
    talk->cache = cache;
    return AH_OK;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int options_check(const struct ah_talk_options *options)
{
    if (!options->generate.model_dir)
        return ah__fail(AH_EINPUT, "model: found none, expected a folder with a model");
    if (options->generate.tokens < 0 || options->context_tokens < 0)
        return ah__fail(AH_EINPUT, "%s: found %" PRId64 ", expected 0 or more",
                        options->generate.tokens < 0 ? "tokens" : "context_tokens",
                        options->generate.tokens < 0 ? options->generate.tokens : options->context_tokens);
    return AH_OK;
}

static int sampler_open(struct ah_talk *talk)
{
    const struct ah_generate_options *options = &talk->options.generate;
    const struct ah_sampling sampling = {options->temperature,        options->top_k, options->top_p, options->min_p,
                                         options->repetition_penalty, options->seed};
    int64_t vocab = ah_model_get(talk->from.model)->vocab_size, known = talk->from.tokenizer->vocab_size;
    return ah__sampler_init(&talk->sampler, (int)(vocab < known ? vocab : known), &sampling);
}

static int open_all(struct ah_talk *talk)
{
    const struct ah_generate_options *options = &talk->options.generate;
    const int64_t wanted = talk->options.context_tokens;
    AH_TRY(options_check(&talk->options));
    AH_TRY(ah__inference_open(&talk->from, options->model_dir, options->adapter_dir));
    AH_TRY(ah__tokenizer_check(talk->from.tokenizer));
    AH_TRY(ah__inference_chat(&talk->chat, &talk->from, options));
    AH_TRY(sampler_open(talk));
    /* A model that was tuned on short conversations still knows all positions of its base model. */
    int64_t most = ah_model_get(talk->from.model)->max_seq, usual = most < CONTEXT_MOST ? most : CONTEXT_MOST;
    if (wanted > most)
        return ah__fail(AH_EINPUT, "context_tokens: found %" PRId64 ", expected at most the model's %" PRId64, wanted,
                        most);
    talk->room = wanted ? wanted : usual;
    AH_TRY(ah__new(&talk->ids, (size_t)talk->room, sizeof *talk->ids));
    talk->messages = cJSON_CreateArray();
    if (!talk->messages)
        return ah__fail(AH_ENOMEM, "out of host memory: messages");
    if (talk->options.system && talk->options.system[0])
        AH_TRY(message_add(talk, "system", talk->options.system));
    AH_TRY(make_ready(talk));
    return ah__new(&talk->logits, (size_t)talk->from.partition->vocab, sizeof *talk->logits);
}

int ah_talk_open(struct ah_talk **talk, const struct ah_talk_options *options)
{
    struct ah_talk *opened;
    AH_TRY(ah__new(&opened, 1, sizeof *opened));
    opened->options = *options;
    int status = open_all(opened);
    if (status == AH_OK)
        *talk = opened;
    else
        ah_talk_close(opened);
    return status;
}

void ah_talk_close(struct ah_talk *talk)
{
    if (!talk)
        return;
    ah__sampler_fini(&talk->sampler);
    ah__inference_close(&talk->from);
    ah__chat_close(talk->chat);
    cJSON_Delete(talk->messages);
    ah__free(talk->ids);
    ah__free(talk->logits);
    ah__free(talk);
}

/* ---- a turn ------------------------------------------------------------------------------------------------------ */

/* Takes the new prompt's ids. The cache stays valid for ids that are the same as before, except the prompt's last
 * token, whose logits are wanted. */
static int ids_take(struct ah_talk *talk, const int32_t *ids, int64_t count)
{
    int64_t same = 0;
    if (count == 0 || count >= talk->room)
        return ah__fail(AH_EINPUT,
                        "the conversation: found %" PRId64 " tokens, expected 1 to %" PRId64 " (the context)", count,
                        talk->room - 1);
    AH_TRY(ah__ids_check(ids, count, ah_model_get(talk->from.model)->vocab_size, "the conversation"));
    while (same < talk->kept && same < count - 1 && ids[same] == talk->ids[same])
        same++;
    memcpy(talk->ids, ids, (size_t)count * sizeof *ids);
    talk->count = count;
    talk->kept = same;
    return AH_OK;
}

static int prompt_read(struct ah_talk *talk)
{
    int32_t *ids = NULL;
    int64_t count = 0;
    AH_TRY(ah__inference_render(&ids, &count, &talk->from, talk->chat, talk->messages));
    int status = ids_take(talk, ids, count);
    ah__free(ids);
    return status;
}

/* Computes the logits after the last token. */
static int foretell(struct ah_talk *talk)
{
    AH_TRY(make_ready(talk));
    for (; talk->kept < talk->count; talk->kept++)
        AH_TRY(ah__run_decode(talk->from.run, talk->ids[talk->kept], (int32_t)talk->kept));
    return ah__run_logits(talk->from.run, 0, talk->logits);
}

/* Gives the caller the part of the answer from byte `told` on. */
static int tell(const struct ah_talk *talk, int token, const struct ah_buf *answer, size_t told)
{
    const struct ah_generate_options *options = &talk->options.generate;
    if (!options->on_token)
        return 0;
    return options->on_token(token, answer->text ? answer->text + told : "", answer->length - told, options->context);
}

/* Generates the answer's text, up to an end token, the limit on tokens or the end of the context. */
static int answer_write(struct ah_buf *answer, struct ah_talk *talk)
{
    const struct ah_tokenizer *tokenizer = talk->from.tokenizer;
    const int64_t most = talk->options.generate.tokens ? talk->options.generate.tokens : ANSWER_MOST;
    struct ah_token_stream stream = {.tokenizer = tokenizer, .started = true};
    size_t told;
    int token, stop = 0;
    for (int64_t i = 0; i < most && talk->count < talk->room && !stop; i++) {
        AH_TRY(foretell(talk));
        AH_TRY(ah__sampler_draw(&token, &talk->sampler, talk->logits, talk->ids, talk->count, talk->drawn++));
        if (ah__inference_ends(&talk->from, token))
            break;
        talk->ids[talk->count++] = token;
        told = answer->length;
        if (!tokenizer->is_special(tokenizer, token))
            AH_TRY(ah__token_stream_next(answer, &stream, token));
        stop = tell(talk, token, answer, told);
    }
    told = answer->length;
    AH_TRY(ah__token_stream_end(answer, &stream));
    if (answer->length > told)
        (void)tell(talk, -1, answer, told);
    return answer->status;
}

/* Adds the answer to the messages. Invalid UTF-8 in it is replaced. */
static int answer_keep(struct ah_talk *talk, const struct ah_buf *answer)
{
    struct ah_buf text = {0};
    ah__utf8_repair(&text, answer->text ? answer->text : "", answer->length);
    int status = text.status;
    if (status == AH_OK)
        status = message_add(talk, "assistant", text.text ? text.text : "");
    ah__buf_free(&text);
    return status;
}

int ah_talk_say(struct ah_talk *talk, const char *text)
{
    struct ah_buf answer = {0};
    if (!talk)
        return ah__fail(AH_EINPUT, "chat: found none, expected one that is open");
    int before = cJSON_GetArraySize(talk->messages);
    int status = message_add(talk, "user", text);
    if (status == AH_OK)
        status = prompt_read(talk);
    if (status == AH_OK)
        status = answer_write(&answer, talk);
    if (status == AH_OK)
        status = answer_keep(talk, &answer);
    while (status != AH_OK && cJSON_GetArraySize(talk->messages) > before) /* leaves the conversation as before the
                                                                            * turn */
        cJSON_DeleteItemFromArray(talk->messages, before);
    ah__buf_free(&answer);
    return status;
}
