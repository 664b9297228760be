/* Conversations through the command line: what a template makes of them, trainings, and talking through a pipe. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "cli/program.h"

static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder(), name);
    assert_ok(ah__file_write(path, text, strlen(text)));
}

static const char template[] = "{% for m in messages %}{{ m.role[0] }}:{{ m.content }};{% endfor %}"
                               "{% if add_generation_prompt %}a:{% endif %}";
static const char talk[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"assistant\", "
                           "\"content\": \"y\"}]}\n";

static void templates_are_shown(void **state)
{
    put("t.jinja", template);
    put("talk.json", talk);
    run("chat --chat-template %s/t.jinja --render %s/talk.json", folder(), folder());
    assert_ran(0);
    assert_string_equal(ran.out, "u:x;a:y;");
    run("chat --chat-template %s/t.jinja --render - --generation-prompt < %s/talk.json", folder(), folder());
    assert_string_equal(ran.out, "u:x;a:y;a:");
    run("chat --chat-template %s/t.jinja --render %s/talk.json --train-on assistant", folder(), folder());
    assert_string_equal(ran.out, "[{\"text\": \"u:x;a:y;\", \"parts\": [[6, 8]]}]\n");
    run("chat --chat-template %s/t.jinja --render %s/talk.json --train-on user", folder(), folder());
    assert_ran(2);
    assert_says(ran.err, "--train-on: found 'user', expected assistant, all or last");
    run("chat --model %s --render %s/talk.json", folder(), folder());
    assert_ran(2);
    assert_says(ran.err, "found no chat template");
    run("chat --train-on all --model %s", folder());
    assert_ran(2);
    assert_says(ran.err, "found without --render");
}

/* Trained on conversations, measured on them, and talked with; the saved folder has the template. */
static void trains_and_talks(void **state)
{
    const char *at = folder();
    char data[4096] = "";
    put("t.jinja", template);
    for (int i = 0; i < 20; i++)
        strcat(data, talk);
    put("talk.jsonl", data);
    run("train --model %s/model.json --data %s/talk.jsonl --batch 2 --seq 12 --steps 2 --threads 1 --out %s/chat", at,
        at, at);
    assert_ran(2);
    assert_says(ran.err, "line 1: found a conversation (messages), and no chat template with the model");
    run("train --model %s/model.json --data %s/talk.jsonl --chat-template %s/t.jinja --batch 2 --seq 12 --steps 40 "
        "--lr 0.01 --threads 1 --out %s/chat",
        at, at, at, at);
    assert_ran(0);
    assert_says(ran.err, "20 examples (messages) by the chat template");
    run("eval --model %s/chat --data %s/talk.jsonl --threads 1 --json", at, at);
    assert_ran(0);
    assert_says(ran.out, "\"tokens\": 40"); /* "y;" of each */
    run("eval --model %s/chat --data %s/talk.jsonl --threads 1 --train-on all --json", at, at);
    assert_says(ran.out, "\"tokens\": 140"); /* all but the first */
    run("generate --model %s/chat --chat --prompt x --temperature 0 --tokens 2 --threads 1", at);
    assert_string_equal(ran.out, "y;\n");
    assert_says(ran.err, "note: the answer was cut after 2 tokens (--tokens)");
    run("generate --model %s/chat --prompt x --chat-template t.jinja", at);
    assert_ran(2);
    assert_says(ran.err, "--chat-template: found it without --chat");
    put("lines", "x\n\nx");
    run("chat --model %s/chat --context 12 --temperature 0 --tokens 1 --threads 1 < %s/lines", at, at);
    assert_ran(2);
    assert_string_equal(ran.out, "y\n");
    assert_says(ran.err, "note: the answer was cut after 1 token (--tokens)");
    assert_says(ran.err, "the conversation: found 14 tokens, expected 1 to 11");
}

AH_TEST_CASES("cli/chat", templates_are_shown, trains_and_talks)
