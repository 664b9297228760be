/* Any bytes as a chat template: refused, or a text that is the same twice and whose parts that count lie in it. */
#include "fuzz.h"

#include <string.h>

#include "base/json_python.h"
#include "chat/chat.h"

static const char conversation[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"S\"}, {\"role\": \"user\", \"content\": \"h\\u00e9\"}, "
    "{\"role\": \"assistant\", \"content\": \"A <b>\", \"tool_calls\": [{\"function\": {\"name\": \"f\", "
    "\"arguments\": {\"x\": 1.0}}}]}, {\"role\": \"assistant\", \"reasoning\": \"R\", \"content\": \"B\"}], "
    "\"tools\": [{\"name\": \"f\", \"n\": [1, null, true]}], \"variables\": {\"eos_token\": \"</s>\"}}";

static void masked_check(const struct ah_chat *chat, const struct ah_conversation *given)
{
    struct ah_chat_masked masked = {0};
    int status = ah__chat_mask(&masked, chat, given, AH_TRAIN_ON_ASSISTANT);
    FUZZ_CHECK(status == AH_OK || status == AH_EINPUT);
    for (size_t i = 0; i < masked.count; i++)
        for (size_t k = 0; k < masked.pieces[i].span_count; k++) {
            const struct ah_text_span *span = &masked.pieces[i].spans[k];
            FUZZ_CHECK(span->begin < span->end && span->end <= masked.pieces[i].text.length);
            FUZZ_CHECK(k == 0 || span[-1].end < span->begin);
        }
    ah__chat_masked_free(&masked);
}

static void chat_check(const struct ah_chat *chat, const cJSON *tree)
{
    const struct tm now = {.tm_year = 124, .tm_mday = 1};
    const struct ah_conversation given = {.messages = cJSON_GetObjectItem(tree, "messages"),
                                          .tools = cJSON_GetObjectItem(tree, "tools"),
                                          .variables = cJSON_GetObjectItem(tree, "variables"),
                                          .now = &now};
    struct ah_buf text = {0}, again = {0};
    int status = ah__chat_render(&text, chat, &given);
    FUZZ_CHECK(status == AH_OK || status == AH_EINPUT);
    FUZZ_CHECK(ah__chat_render(&again, chat, &given) == status);
    FUZZ_CHECK(text.length == again.length && (!text.length || memcmp(text.text, again.text, text.length) == 0));
    ah__buf_free(&text);
    ah__buf_free(&again);
    if (status == AH_OK)
        masked_check(chat, &given);
}

int FUZZ_TARGET(const uint8_t *data, size_t size)
{
    const struct ah_chat_source plain = {(const char *)data, size, "fuzz"}, none = {0};
    const struct ah_chat *chat = NULL;
    cJSON *tree = NULL;
    int status = ah__chat_new(&chat, &plain, &none, NULL);
    FUZZ_CHECK(status == AH_OK || status == AH_EINPUT);
    if (status != AH_OK)
        return 0;
    FUZZ_CHECK(ah__json_value_parse(&tree, conversation, strlen(conversation), "conversation") == AH_OK);
    chat_check(chat, tree);
    cJSON_Delete(tree);
    ah__chat_close(chat);
    return 0;
}
