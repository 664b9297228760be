/* Templates of folders, renderings of conversations, and what counts for the loss. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json_python.h"
#include "chat/chat.h"
#include "test.h"

static const char plain[] = "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}</>\n{% endfor %}"
                            "{% if add_generation_prompt %}<assistant>{% endif %}";
static const char talk[] = "[{\"role\": \"user\", \"content\": \"Hé\"}, {\"role\": \"assistant\", \"content\": \"A\"}, "
                           "{\"role\": \"user\", \"content\": \"?\"}, {\"role\": \"assistant\", \"content\": \"BB\"}]";

static const struct ah_chat *parsed(const char *source)
{
    const struct ah_chat *chat;
    const struct ah_chat_source given = {source, strlen(source), "T"}, none = {0};
    assert_ok(ah__chat_new(&chat, &given, &none, NULL));
    return chat;
}

static cJSON *json(const char *text)
{
    cJSON *tree;
    assert_ok(ah__json_value_parse(&tree, text, strlen(text), "test"));
    return tree;
}

/* A rendering by the public function. */
static void assert_public(const struct ah_chat *chat, const char *conversation, bool prompt, const char *expected)
{
    const struct ah_chat_options options = {
        .conversation = conversation, .length = strlen(conversation), .add_generation_prompt = prompt};
    char *text;
    size_t length;
    assert_ok(ah_chat_render(&text, &length, chat, &options));
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
    ah__free(text);
}

/* The parts that count in brackets, pieces divided by " / ". */
static void shown_mask(char *to, const struct ah_chat_masked *masked)
{
    for (size_t p = 0; p < masked->count; p++) {
        const struct ah_chat_piece *piece = &masked->pieces[p];
        to += sprintf(to, "%s", p ? " / " : "");
        for (size_t i = 0, span = 0; i <= piece->text.length; i++) {
            if (span < piece->span_count && piece->spans[span].end == i) {
                *to++ = ']';
                span++;
            }
            if (span < piece->span_count && piece->spans[span].begin == i)
                *to++ = '[';
            *to++ = piece->text.text[i];
        }
        to--; /* the piece's terminating zero */
    }
}

static void assert_masks(const char *source, const char *messages, enum ah_train_on train_on, size_t apart,
                         const char *expected)
{
    const struct ah_chat *chat = parsed(source);
    cJSON *tree = json(messages);
    const struct ah_conversation conversation = {.messages = tree};
    struct ah_chat_masked masked = {0};
    char shown[1024] = "";
    assert_ok(ah__chat_mask(&masked, chat, &conversation, train_on));
    shown_mask(shown, &masked);
    assert_string_equal(shown, expected);
    assert_int_equal(masked.apart, apart);
    ah__chat_masked_free(&masked);
    cJSON_Delete(tree);
    ah__chat_close(chat);
}

static void assert_mask_fails(const char *source, const char *messages, enum ah_train_on train_on, const char *words)
{
    const struct ah_chat *chat = parsed(source);
    cJSON *tree = json(messages);
    const struct ah_conversation conversation = {.messages = tree, .name = "data.jsonl: line 3"};
    struct ah_chat_masked masked = {0};
    assert_fails(ah__chat_mask(&masked, chat, &conversation, train_on), AH_EINPUT, words);
    assert_non_null(strstr(ah_error(), "data.jsonl: line 3"));
    ah__chat_masked_free(&masked);
    cJSON_Delete(tree);
    ah__chat_close(chat);
}

static void renders(void **state)
{
    const struct ah_chat *chat = parsed(plain);
    static const char user[] = "[{\"role\": \"user\", \"content\": \"x\"}]";
    assert_public(chat, user, false, "<user>x</>\n");
    assert_public(chat, user, true, "<user>x</>\n<assistant>");
    assert_public(chat, "{\"messages\": [], \"add_generation_prompt\": true, \"bos_token\": \"B\"}", false,
                  "B<assistant>");
    ah__chat_close(chat);
}

/* As transformers: null is as if it were not there; reasoning goes by all its names; 1 and 1.0 stay apart. */
static void messages_are_normal(void **state)
{
    const struct ah_chat *chat = parsed("{{ messages[0].content is defined }} {{ messages[0].thinking }} "
                                        "{{ messages[0].reasoning_content }} {{ tools is none }} {{ tools | tojson }}");
    assert_public(chat,
                  "{\"messages\": [{\"role\": \"a\", \"content\": null, \"reasoning\": \"R\"}], "
                  "\"tools\": [1, 1.0, 2e3, 9007199254740993]}",
                  false, "False R R False [1, 1.0, 2000.0, 9007199254740993]");
    ah__chat_close(chat);
}

static void masks_by_marks(void **state)
{
    static const char marked[] =
        "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ "
        "m.content }}</>{% endgeneration %}{% else %}{{ m.content }}</>{% endif %}{% endfor %}";
    assert_masks(marked, talk, AH_TRAIN_ON_ASSISTANT, 0, "<user>Hé</><assistant>[A</>]<user>?</><assistant>[BB</>]");
    assert_masks(marked, talk, AH_TRAIN_ON_LAST, 0, "<user>Hé</><assistant>A</><user>?</><assistant>[BB</>]");
    /* Of several marks in a turn all are the last message's. */
    assert_masks("{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
                 "{% endgeneration %}|{% generation %};{% endgeneration %}{% else %}{{ m.content }};{% endif %}"
                 "{% endfor %}",
                 talk, AH_TRAIN_ON_LAST, 0, "<user>Hé;<assistant>A|;<user>?;<assistant>[BB]|[;]");
    /* Marks within a macro have no place in the text: the turn is found by prefixes. */
    assert_masks("{% macro f(m) %}{% generation %}{{ m.content }}{% endgeneration %}{% endmacro %}"
                 "{% for m in messages %}<{{ m.role }}>{{ f(m) }}{% endfor %}",
                 "[{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"assistant\", \"content\": \"y\"}]",
                 AH_TRAIN_ON_ASSISTANT, 0, "<user>x[<assistant>y]");
}

static void masks_by_prefixes(void **state)
{
    assert_masks(plain, talk, AH_TRAIN_ON_ASSISTANT, 0,
                 "<user>Hé</>\n<assistant>[A</>\n]<user>?</>\n<assistant>[BB</>\n]");
    assert_masks(plain, talk, AH_TRAIN_ON_LAST, 0, "<user>Hé</>\n<assistant>A</>\n<user>?</>\n<assistant>[BB</>\n]");
    assert_masks(plain, talk, AH_TRAIN_ON_ALL, 0, "[<user>Hé</>\n<assistant>A</>\n<user>?</>\n<assistant>BB</>\n]");
    assert_mask_fails(plain, "[{\"role\": \"user\", \"content\": \"x\"}]", AH_TRAIN_ON_ASSISTANT,
                      "no message of an assistant");
    assert_mask_fails(plain,
                      "[{\"role\": \"assistant\", \"content\": \"x\"}, {\"role\": \"user\", \"content\": \"x\"}]",
                      AH_TRAIN_ON_LAST, "no assistant's, expected one to learn from");
}

/* The prompt opens a thought that the turn does not have: the turn begins where both part. */
static void prompt_is_longer_than_the_turn(void **state)
{
    assert_masks("{% for m in messages %}<{{ m.role }}>{{ m.content }};{% endfor %}{% if add_generation_prompt %}"
                 "<assistant><think>{% endif %}",
                 talk, AH_TRAIN_ON_ASSISTANT, 0, "<user>Hé;<assistant>[A;]<user>?;<assistant>[BB;]");
}

/* The last turn is written otherwise than earlier ones, which are pieces of their own. */
static void not_prefix_stable(void **state)
{
    assert_masks("{% for m in messages %}<{{ m.role }}>{% if loop.last and m.role == 'assistant' %}(think){% endif %}"
                 "{{ m.content }};{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}",
                 talk, AH_TRAIN_ON_ASSISTANT, 1,
                 "<user>Hé;<assistant>[(think)A;] / <user>Hé;<assistant>A;<user>?;<assistant>[(think)BB;]");
    /* What is before the turn changes, too: the number of messages. */
    static const char counted[] = "{{ messages | length }}{% for m in messages %}<{{ m.role }}>{{ m.content }};"
                                  "{% endfor %}";
    assert_masks(counted, "[{\"role\": \"assistant\", \"content\": \"A\"}]", AH_TRAIN_ON_ALL, 0, "[1<assistant>A;]");
    assert_mask_fails(counted, talk, AH_TRAIN_ON_ASSISTANT, "message 1: found that the chat template does not write");
}

/* A template that has no prompt of an empty conversation: what an assistant says first is not learned. */
static void first_turn_of_an_assistant(void **state)
{
    assert_masks("{{ messages[0].role }}:{% for m in messages %}<{{ m.role }}>{{ m.content }};{% endfor %}"
                 "{% if add_generation_prompt %}<assistant>{% endif %}",
                 "[{\"role\": \"assistant\", \"content\": \"A\"}, {\"role\": \"user\", \"content\": \"B\"}, "
                 "{\"role\": \"assistant\", \"content\": \"C\"}]",
                 AH_TRAIN_ON_ASSISTANT, 0, "assistant:<assistant>A;<user>B;<assistant>[C;]");
    assert_masks(plain, "[{\"role\": \"assistant\", \"content\": \"A\"}]", AH_TRAIN_ON_ASSISTANT, 0,
                 "<assistant>[A</>\n]");
}

static void file_put(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(ah__file_write(path, text, strlen(text)));
}

static void assert_folder_says(const char *folder, bool tools, const char *expected)
{
    const struct ah_chat *chat;
    assert_ok(ah_chat_open(&chat, folder, NULL));
    assert_public(chat, tools ? "{\"messages\": [], \"tools\": [{}]}" : "[]", false, expected);
    ah_chat_close(chat);
}

static void folders(void **state)
{
    const char *folder = ah_test_folder();
    const struct ah_chat *chat;
    file_put(folder, "config.json", "{}");
    assert_fails(ah_chat_open(&chat, folder, NULL), AH_EINPUT, "found no chat template");
    file_put(folder, "tokenizer_config.json",
             "{\"bos_token\": {\"content\": \"<s>\"}, \"eos_token\": null, \"chat_template\": \"{{ bos_token }}c{{ "
             "eos_token }}\"}");
    assert_folder_says(folder, false, "<s>c");
    file_put(folder, "special_tokens_map.json", "{\"bos_token\": \"other\", \"eos_token\": \"</s>\"}");
    assert_folder_says(folder, false, "<s>c</s>");
    file_put(
        folder, "tokenizer_config.json",
        "{\"chat_template\": [{\"name\": \"default\", \"template\": \"d\"}, {\"name\": \"tool_use\", \"template\": "
        "\"t\"}, {\"name\": \"rag\", \"template\": \"{% never parsed\"}]}");
    assert_folder_says(folder, false, "d");
    assert_folder_says(folder, true, "t");
    file_put(folder, "chat_template.jinja", "file {{ eos_token }}");
    assert_folder_says(folder, true, "file </s>");
    file_put(folder, "chat_template.jinja", "a\n{{ b");
    assert_fails(ah_chat_open(&chat, folder, NULL), AH_EINPUT, "chat_template.jinja: line 2");
    /* A file that is named, with the model's special tokens. */
    char other[512];
    snprintf(other, sizeof other, "%s/other.jinja", folder);
    file_put(folder, "other.jinja", "o{{ eos_token }}");
    assert_ok(ah_chat_open(&chat, folder, other));
    assert_public(chat, "[]", false, "o</s>");
    ah_chat_close(chat);
}

static void refuses_what_are_no_messages(void **state)
{
    static const char *const rows[][2] = {
        {"[1]", "key 'messages[0]': found 1, expected a message"},
        {"3", "found neither a list nor an object, expected messages"},
        {"{\"a\": 1}", "found an object with the keys a, expected text; prompt"},
        {"[{\"role\": \"a\"}", "line 1, column 15: found a syntax error at the end of the text"},
        {"[{\"role\": 01}]", "line 1, column 11"},
        {"{\"messages\": [], \"tools\": 3}", "key 'tools'"},
        {"[\"\\x\"]", "line 1, column"},
        {"[{\"role\": \"a\", \"content\": null, \"a\": 123456789012345678901}]", "64 bits"},
        {"[] []", "more text behind"},
    };
    const struct ah_chat *chat = parsed("{{ messages }}");
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        char *text;
        size_t length;
        const struct ah_chat_options options = {.conversation = rows[i][0], .length = strlen(rows[i][0]), .name = "C"};
        assert_fails(ah_chat_render(&text, &length, chat, &options), AH_EINPUT, rows[i][1]);
        assert_int_equal(strncmp(ah_error(), "C: ", 3), 0);
    }
    ah__chat_close(chat);
}

AH_TEST_CASES("chat/chat", renders, messages_are_normal, masks_by_marks, masks_by_prefixes,
              prompt_is_longer_than_the_turn, not_prefix_stable, first_turn_of_an_assistant, folders,
              refuses_what_are_no_messages)
