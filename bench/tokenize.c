/* bench_tokenize --model FOLDER --data TEXT [--runs N]: how fast a text becomes tokens: whole, in pieces of 64 KiB and
 * line by line.
 *
 * Prints one line for each way: the median of N runs (default 5) in MB/s, and the number of tokens. bench/tokenize_peer
 * runs it and the tokenizers library in turns on the same pieces. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "dev/host/clock.h"
#include "tokenizer/tokenizer.h"

enum { PIECE_BYTES = 64 << 10, RUNS_MOST = 99 };

/* Where the piece that starts at `at` ends: of about `bytes`, at a line's end. */
static size_t piece_end(const struct ah_map *text, size_t at, size_t bytes)
{
    size_t end = text->length - at > bytes ? at + bytes : text->length;
    while (end < text->length && text->data[end - 1] != '\n')
        end++;
    return end;
}

static int pass(int64_t *tokens, const struct ah_tokenizer *tokenizer, const struct ah_map *text, size_t bytes)
{
    *tokens = 0;
    for (size_t at = 0, end; at < text->length; at = end) {
        int32_t *ids;
        int64_t count;
        end = piece_end(text, at, bytes);
        AH_TRY(tokenizer->encode(&ids, &count, tokenizer, (const char *)text->data + at, end - at));
        *tokens += count;
        ah__free(ids);
    }
    return AH_OK;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static int measure(const char *name, const struct ah_tokenizer *tokenizer, const struct ah_map *text, size_t bytes,
                   int runs)
{
    double rates[RUNS_MOST];
    int64_t tokens = 0;
    for (int i = 0; i < runs; i++) {
        int64_t start = ah__host_now_ns();
        AH_TRY(pass(&tokens, tokenizer, text, bytes));
        rates[i] = (double)text->length * 1e3 / (double)(ah__host_now_ns() - start);
    }
    qsort(rates, (size_t)runs, sizeof *rates, compare);
    printf("%s %.2f MB/s %lld tokens\n", name, rates[runs / 2], (long long)tokens);
    return AH_OK;
}

int main(int argc, char **argv)
{
    const struct ah_tokenizer *tokenizer = NULL;
    struct ah_map text = {0};
    const char *model = "models", *path = "README.md";
    int runs = 5;
    const struct bench_option options[] = {
        {"model", BENCH_TEXT, &model, "folder with the tokenizer"},
        {"data", BENCH_TEXT, &path, "the text"},
        {"runs", BENCH_COUNT, &runs, "rounds, of which the median is printed"},
    };
    BENCH_OPTIONS(argc, argv, "How fast a text becomes tokens: whole, in pieces of 64 KiB, line by line.\n", options);
    runs = bench_least(runs, RUNS_MOST);
    int status = ah__tokenizer_open(&tokenizer, model);
    if (status == AH_OK)
        status = ah__map_open(&text, path);
    if (status == AH_OK)
        status = measure("whole", tokenizer, &text, text.length, runs);
    if (status == AH_OK)
        status = measure("pieces", tokenizer, &text, PIECE_BYTES, runs);
    if (status == AH_OK)
        status = measure("lines", tokenizer, &text, 1, runs);
    if (status != AH_OK)
        fprintf(stderr, "bench_tokenize: %s\n", ah_error());
    ah__map_close(&text);
    ah__tokenizer_close(tokenizer);
    return status == AH_OK ? 0 : 1;
}
