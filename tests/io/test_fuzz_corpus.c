/* Replays every fuzz target's corpus, and every prefix of its small files, in the ordinary run. */
#include "test.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

#define FUZZ_TARGET fuzz_safetensors
#include "../../fuzz/fuzz_safetensors.c"
#undef FUZZ_TARGET
#define FUZZ_TARGET fuzz_gguf
int fuzz_gguf(const uint8_t *data, size_t size);
#include "../../fuzz/fuzz_gguf.c"
#undef FUZZ_TARGET
#define FUZZ_TARGET fuzz_tokens
int fuzz_tokens(const uint8_t *data, size_t size);
#include "../../fuzz/fuzz_tokens.c"
#undef FUZZ_TARGET
#define FUZZ_TARGET fuzz_size
int fuzz_size(const uint8_t *data, size_t size);
#include "../../fuzz/fuzz_size.c"
#undef FUZZ_TARGET
#define FUZZ_TARGET fuzz_json
int fuzz_json(const uint8_t *data, size_t size);
#include "../../fuzz/fuzz_json.c"
#undef FUZZ_TARGET
#define FUZZ_TARGET fuzz_json_config
int fuzz_json_config(const uint8_t *data, size_t size);
#include "../../fuzz/fuzz_json_config.c"
#undef FUZZ_TARGET
#define FUZZ_TARGET fuzz_tokenizer
int fuzz_tokenizer(const uint8_t *data, size_t size);
#include "../../fuzz/fuzz_tokenizer.c"
#undef FUZZ_TARGET
#define FUZZ_TARGET fuzz_pieces
int fuzz_pieces(const uint8_t *data, size_t size);
#include "../../fuzz/fuzz_pieces.c"
#undef FUZZ_TARGET
#define FUZZ_TARGET fuzz_documents
int fuzz_documents(const uint8_t *data, size_t size);
#include "../../fuzz/fuzz_documents.c"
#undef FUZZ_TARGET
#define FUZZ_TARGET fuzz_reports
int fuzz_reports(const uint8_t *data, size_t size);
#include "../../fuzz/fuzz_reports.c"
#undef FUZZ_TARGET
#define FUZZ_TARGET fuzz_folders
int fuzz_folders(const uint8_t *data, size_t size);
#include "../../fuzz/fuzz_folders.c"
#undef FUZZ_TARGET
#define FUZZ_TARGET fuzz_templates
int fuzz_templates(const uint8_t *data, size_t size);
#include "../../fuzz/fuzz_templates.c"
#undef FUZZ_TARGET
#define FUZZ_TARGET fuzz_sampling
int fuzz_sampling(const uint8_t *data, size_t size);
#include "../../fuzz/fuzz_sampling.c"

enum { PREFIXES_MOST = 600 };

static void replay_file(const char *path, int (*target)(const uint8_t *data, size_t size))
{
    char *text = NULL;
    size_t length = 0;
    assert_ok(ah__file_read(&text, &length, path, 1 << 20));
    for (size_t cut = length < PREFIXES_MOST ? 0 : length; cut <= length; cut++) {
        uint8_t *exact = NULL; /* its own allocation, so that a sanitizer sees one byte too far */
        assert_ok(ah__new(&exact, cut, 1));
        memcpy(exact, text, cut);
        assert_int_equal(target(exact, cut), 0);
        ah__free(exact);
    }
    ah__free(text);
}

static void replay(const char *name, int (*target)(const uint8_t *data, size_t size))
{
    char folder[512], path[1024];
    int count = 0;
    snprintf(folder, sizeof folder, "%s/../fuzz/corpus/%s", ah_test_source(), name);
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        replay_file(path, target);
        count++;
    }
    closedir(list);
    assert_true(count > 5);
}

#define REPLAY(name)                                                                                                   \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        replay(#name, fuzz_##name);                                                                                    \
    }
REPLAY(safetensors)
REPLAY(gguf)
REPLAY(tokens)
REPLAY(size)
REPLAY(json)
REPLAY(json_config)
REPLAY(tokenizer)
REPLAY(pieces)
REPLAY(documents)
REPLAY(reports)
REPLAY(folders)
REPLAY(templates)
REPLAY(sampling)

AH_TEST_CASES("io/fuzz_corpus", safetensors, gguf, tokens, size, json, json_config, tokenizer, pieces, documents,
              reports, folders, templates, sampling)
