#include "data/tokens_internal.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "io/stream.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tokens are used as they lie in the file, little-endian"
#endif

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Refuses a file that is not text, which must not be learned as if it were. */
static int text_check(const struct ah_map *map, const char *path)
{
    const char *packer = ah__packer_of(map->data, map->length);
    if (packer) /* the user asked for text, or the packing is not supported */
        return ah__fail(AH_EINPUT, "%s: found data packed by %s, expected text, gzip, zstd or a token file", path,
                        packer);
    return ah__documents_check_text(path, map->data, map->length, "text or a token file");
}

static int text_read(struct ah_tokens *tokens, const char *path, const struct ah_tokenizer *tokenizer)
{
    const struct ah_map *map = &tokens->map;
    AH_TRY(text_check(map, path));
    tokens->info.text = true;
    tokens->info.format = "text";
    tokens->info.tokens = (int64_t)map->length;
    tokens->data = map->data;
    tokens->width = 1;
    if (tokenizer->text_is_ids)
        return AH_OK;
    int status =
        tokenizer->encode(&tokens->encoded, &tokens->info.tokens, tokenizer, (const char *)map->data, map->length);
    return status == AH_OK ? AH_OK : ah__fail_prefix(status, "%s", path);
}

static int token_file_read(struct ah_tokens *tokens, const char *path, const struct ah_tokenizer *tokenizer)
{
    const struct ah_map *map = &tokens->map;
    struct ah_token_file *file = &tokens->file;
    AH_TRY(ah__token_file_parse(file, map->data, map->length, path));
    if (file->ours && file->tokenizer != tokenizer->signature)
        return ah__fail(AH_EINPUT,
                        "%s: found tokens of another tokenizer (%016llx), expected the model's, %s "
                        "(%016llx)",
                        path, (unsigned long long)file->tokenizer, tokenizer->name,
                        (unsigned long long)tokenizer->signature);
    tokens->data = map->data + AH_TOKEN_FILE_HEADER;
    tokens->offset = AH_TOKEN_FILE_HEADER;
    tokens->width = file->width;
    tokens->info.tokens = file->tokens;
    tokens->info.documents = file->documents;
    tokens->info.format = "llmc";
    return AH_OK;
}

static int nanogpt_read(struct ah_tokens *tokens, const char *path)
{
    const struct ah_map *map = &tokens->map;
    if (map->length % 2)
        return ah__fail(AH_EINPUT, "%s: found %zu bytes, expected an even number: nanoGPT's tokens have 16 bits", path,
                        map->length);
    tokens->data = map->data;
    tokens->width = 2;
    tokens->info.tokens = (int64_t)(map->length / 2);
    tokens->info.format = "nanogpt";
    return AH_OK;
}

/* ---- which format ------------------------------------------------------------------------------------------------ */

/* Returns the format of one mapped file; never AUTO. */
static enum ah_data_format file_format(const struct ah_map *map, const char *path, int64_t vocab_size)
{
    enum { LOOKED_AT = 1 << 20 };
    size_t length = map->length < LOOKED_AT ? map->length : LOOKED_AT, start;
    const char *text = (const char *)map->data;
    if (ah__token_file_is(map->data, map->length))
        return AH_DATA_LLMC;
    if (ah__documents_are_table(path, text, length))
        return AH_DATA_JSONL; /* which refuses it */
    if (ah__records_sniff(&start, path, false, text, length, ah__form_has_key) != AH_RECORDS_NONE)
        return AH_DATA_JSONL;
    return ah__nanogpt_is(map->data, map->length, path, vocab_size) ? AH_DATA_NANOGPT : AH_DATA_TEXT;
}

static bool can_unpack(const struct ah_map *map)
{
    const char *packer = ah__packer_of(map->data, map->length);
    return packer && (strcmp(packer, "gzip") == 0 || strcmp(packer, "zstd") == 0);
}

/* Fails because all examples were left out. */
static int no_example(const struct ah_corpus *corpus, const char *path, int64_t seq)
{
    if (corpus->bad && !corpus->left_out && !corpus->unlearned)
        return ah__fail(AH_EINPUT, "%s: found %lld example%s whose answer '%s' calls bad, and no other, expected some",
                        path, (long long)corpus->bad, corpus->bad == 1 ? "" : "s", corpus->bad_key);
    if (!corpus->left_out)
        return ah__fail(AH_EINPUT,
                        "%s: found %lld example%s of which nothing is learned, since %s all out, expected some", path,
                        (long long)corpus->unlearned, corpus->unlearned == 1 ? "" : "s",
                        corpus->templated ? "the chat template leaves" : "labels leave");
    return ah__fail(AH_EINPUT, "%s: found no example with room for what is learned of it in %lld tokens, expected one",
                    path, (long long)seq);
}

static int documents_read(struct ah_tokens *tokens, enum ah_data_format format, const char *path,
                          const struct ah_tokenizer *tokenizer, const struct ah_tokens_options *options)
{
    struct ah_corpus *corpus = &tokens->corpus;
    struct ah_tokens_info *info = &tokens->info;
    const struct ah_corpus_options how = {format,       tokenizer,    options->chat, tokens->vocab_size,
                                          options->seq, options->stop};
    AH_TRY(ah__corpus_load(corpus, &path, 1, &how));
    tokens->encoded = corpus->ids;
    info->text = true;
    const bool examples = corpus->examples || corpus->left_out || corpus->unlearned || corpus->bad;
    info->format = examples ? "examples" : "documents";
    info->tokens = corpus->count;
    info->documents = corpus->documents;
    info->cut = corpus->cut;
    info->left_out = corpus->left_out;
    info->unlearned = corpus->unlearned;
    info->bad = corpus->bad;
    info->bad_key = corpus->bad_key;
    info->unread = corpus->unread;
    info->templated = corpus->templated;
    info->turns = corpus->turns;
    info->apart = corpus->apart;
    info->form = corpus->form;
    info->memory_bytes = (int64_t)(corpus->room * sizeof *corpus->ids + corpus->learned_room * sizeof *corpus->learned +
                                   corpus->example_room * sizeof *corpus->examples);
    info->signature = corpus->signature;
    info->tokenizer = tokenizer->signature;
    if (!corpus->documents)
        return ah__fail(AH_EINPUT, "%s: found no record, expected documents or examples", path);
    return corpus->examples || !examples ? AH_OK : no_example(corpus, path, options->seq);
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Finds the tokens. A file must have the format that the user gave. */
static int layout_read(struct ah_tokens *tokens, const char *path, const struct ah_tokenizer *tokenizer,
                       const struct ah_tokens_options *options)
{
    const enum ah_data_format format = options->format;
    const struct ah_map *map = &tokens->map;
    const bool of_tokens = format == AH_DATA_LLMC || format == AH_DATA_NANOGPT;
    if (!map->data && of_tokens)
        return ah__fail(AH_EINPUT, "%s: found a folder or pipe, expected a file of tokens", path);
    if (!map->data || (!of_tokens && can_unpack(map)))
        return documents_read(tokens, format, path, tokenizer, options);
    enum ah_data_format found = file_format(map, path, tokens->vocab_size);
    if (format == AH_DATA_LLMC && found != AH_DATA_LLMC)
        return ah__fail(AH_EINPUT, "%s: found no token file's header, expected one of llm.c", path);
    switch (format == AH_DATA_AUTO ? found : format) {
    case AH_DATA_LLMC:
        return token_file_read(tokens, path, tokenizer);
    case AH_DATA_NANOGPT:
        return nanogpt_read(tokens, path);
    case AH_DATA_TEXT:
        return text_read(tokens, path, tokenizer);
    default:
        return documents_read(tokens, format == AH_DATA_AUTO ? AH_DATA_JSONL : format, path, tokenizer, options);
    }
}

static int64_t token_at(const struct ah_tokens *tokens, int64_t index)
{
    uint16_t token;
    uint32_t wide;
    if (tokens->encoded)
        return tokens->encoded[index];
    if (tokens->width == 1)
        return tokens->data[index];
    if (tokens->width == 4) {
        memcpy(&wide, tokens->data + 4 * index, sizeof wide);
        return wide;
    }
    memcpy(&token, tokens->data + 2 * index, sizeof token);
    return token;
}

static int64_t bytes_max(const unsigned char *data, int64_t count)
{
    unsigned char max = 0;
    for (int64_t i = 0; i < count; i++)
        max = data[i] > max ? data[i] : max;
    return max;
}

static int64_t words_max(const unsigned char *data, int64_t count)
{
    uint16_t max = 0;
    for (int64_t i = 0; i < count; i++) {
        uint16_t token;
        memcpy(&token, data + 2 * i, sizeof token);
        max = token > max ? token : max;
    }
    return max;
}

static int64_t wide_max(const unsigned char *data, int64_t count)
{
    uint32_t max = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t token;
        memcpy(&token, data + 4 * i, sizeof token);
        max = token > max ? token : max;
    }
    return max;
}

static int64_t ids_max(const int32_t *ids, int64_t count)
{
    int32_t max = 0;
    for (int64_t i = 0; i < count; i++)
        max = ids[i] > max ? ids[i] : max;
    return max;
}

static int64_t tokens_max(const struct ah_tokens *tokens)
{
    if (tokens->encoded)
        return ids_max(tokens->encoded, tokens->info.tokens);
    switch (tokens->width) {
    case 1:
        return bytes_max(tokens->data, tokens->info.tokens);
    case 2:
        return words_max(tokens->data, tokens->info.tokens);
    default:
        return wide_max(tokens->data, tokens->info.tokens);
    }
}

/* Checks that all tokens are below vocab_size, by the largest one, a loop that the compiler vectorises; finds the
 * position only for the message. */
static int tokens_check(const struct ah_tokens *tokens, const char *path, const struct ah_tokenizer *tokenizer,
                        int64_t vocab_size)
{
    bool text = tokens->info.text;
    if (text && vocab_size >= tokenizer->vocab_size)
        return AH_OK;
    if (tokens_max(tokens) < vocab_size)
        return AH_OK;
    int64_t at = 0;
    while (token_at(tokens, at) < vocab_size)
        at++;
    return ah__fail(AH_EINPUT, "%s: %s %lld: found %lld, expected a token below the model's vocab_size %lld", path,
                    text ? tokenizer->unit : "token", (long long)at, (long long)token_at(tokens, at),
                    (long long)vocab_size);
}

/* Cuts off the validation part if both parts then have a window. */
static int tokens_split(struct ah_tokens *tokens, const char *path, int64_t seq, double val_fraction)
{
    struct ah_tokens_info *info = &tokens->info;
    int64_t count = info->tokens;
    if (seq >= count)
        return ah__fail(AH_EINPUT,
                        "%s: found %lld tokens, expected at least %lld (one sequence of %lld and its target)", path,
                        (long long)count, (long long)seq + 1, (long long)seq);
    int64_t val = tokens->file.ours ? tokens->file.val_tokens : (int64_t)((double)count * val_fraction);
    if (tokens->file.ours && val > 0 && (val <= seq || count - val <= seq))
        return ah__fail(AH_EINPUT,
                        "%s: found %lld tokens to train on and %lld for validation, expected at least %lld "
                        "of each (one sequence of %lld and its target)",
                        path, (long long)(count - val), (long long)val, (long long)seq + 1, (long long)seq);
    info->held_out = tokens->file.ours ? val > 0 : val_fraction > 0;
    if (val < seq + 1)
        val = seq + 1;
    info->held_out = info->held_out && count - val > seq;
    info->val_tokens = info->held_out ? val : count;
    info->train_tokens = info->held_out ? count - val : count;
    info->train_windows = (info->train_tokens - 1) / seq;
    info->train_filled = info->train_windows * seq;
    info->val_windows = (info->val_tokens - 1) / seq;
    return AH_OK;
}

/* Splits examples, each of which is a window, or several of which are packed into one. */
static int examples_split(struct ah_tokens *tokens, double val_fraction)
{
    const struct ah_corpus *corpus = &tokens->corpus;
    struct ah_tokens_info *info = &tokens->info;
    int64_t count = corpus->example_count, val = (int64_t)((double)count * val_fraction);
    if (val < 1)
        val = 1;
    info->held_out = val_fraction > 0 && count > val;
    info->val_windows = info->held_out ? val : count;
    info->train_windows = info->held_out ? count - val : count;
    info->train_tokens = info->held_out ? corpus->examples[count - val].first : corpus->count;
    info->val_tokens = info->held_out ? corpus->count - info->train_tokens : corpus->count;
    info->examples = count;
    for (int64_t i = 0; i < info->train_windows; i++)
        info->train_filled += corpus->examples[i].length - 1;
    if (!tokens->packed)
        return AH_OK;
    AH_TRY(ah__pack_make(&tokens->train, corpus->examples, 0, info->train_windows, info->seq));
    AH_TRY(ah__pack_make(&tokens->val, corpus->examples, count - info->val_windows, count, info->seq));
    info->train_windows = tokens->train.count;
    info->val_windows = tokens->val.count;
    return AH_OK;
}

int ah__tokens_packed(int64_t *out, const struct ah_tokens *tokens)
{
    const struct ah_tokens_info *info = &tokens->info;
    struct ah_pack pack = {0};
    *out = 0;
    if (!info->examples)
        return AH_OK;
    int64_t count = info->examples - (info->held_out && !tokens->packed ? info->val_windows : 0);
    int status = tokens->packed ? AH_OK : ah__pack_make(&pack, tokens->corpus.examples, 0, count, info->seq);
    *out = tokens->packed ? info->train_windows : pack.count;
    ah__pack_free(&pack);
    return status;
}

static int split(struct ah_tokens *tokens, const char *path, int64_t seq, double val_fraction)
{
    tokens->info.seq = seq;
    if (tokens->corpus.examples)
        return examples_split(tokens, val_fraction);
    return tokens_split(tokens, path, seq, val_fraction);
}

/* Hashes every byte, so that a resumed training notices other data. */
static uint64_t map_signature(const struct ah_map *map, uint64_t seed)
{
    return ah__hash(map->data, map->length, ah__hash_int(map->length, seed));
}

static bool same_stamp(const struct ah_file_stamp *a, const struct ah_file_stamp *b)
{
    return a->bytes == b->bytes && a->modified_ns == b->modified_ns && a->inode == b->inode;
}

static int hash_check(const struct ah_tokens *tokens, const char *path)
{
    const struct ah_token_file *file = &tokens->file;
    uint64_t hash = ah__hash(tokens->data, (size_t)(file->tokens * file->width), 0);
    return hash == file->hash ? AH_OK
                              : ah__fail(AH_ECORRUPT,
                                         "%s: found tokens with checksum %016llx, expected %016llx by the "
                                         "header",
                                         path, (unsigned long long)hash, (unsigned long long)file->hash);
}

/* Checks every token and computes the signature, unless `known` has the result. */
static int content_check(struct ah_tokens *tokens, const char *path, const struct ah_tokenizer *tokenizer,
                         int64_t vocab_size, const struct ah_tokens_known *known)
{
    struct ah_tokens_info *info = &tokens->info;
    if (tokens->corpus.ids)
        return AH_OK; /* checked when it was read */
    info->tokenizer = info->text ? tokenizer->signature : 0;
    if (known && same_stamp(&known->stamp, &info->stamp) && known->tokenizer == info->tokenizer &&
        known->vocab_size <= vocab_size) {
        info->signature = known->signature;
        return AH_OK;
    }
    AH_TRY(tokens_check(tokens, path, tokenizer, vocab_size));
    if (tokens->file.ours)
        AH_TRY(hash_check(tokens, path));
    info->signature = map_signature(&tokens->map, info->tokenizer);
    return AH_OK;
}

/* Opens a file. Folders and pipes are not mapped; their documents have no stamp. */
static int path_open(struct ah_tokens *tokens, const char *path)
{
    AH_TRY(ah__strdup(&tokens->path, path));
    if (is_folder(path) || ah__stream_is_pipe(path))
        return AH_OK;
    AH_TRY(ah__file_open(&tokens->fd, &tokens->info.stamp, path));
    return ah__map_open(&tokens->map, path);
}

/* Checks that the end of documents is known. */
static int pack_check(const struct ah_tokens *tokens, const struct ah_tokenizer *tokenizer)
{
    if (!tokens->packed || tokens->corpus.ids || tokens->file.ours)
        return AH_OK;
    if (strcmp(tokens->info.format, "text") == 0)
        return ah__fail(AH_EINPUT,
                        "%s: found one text, expected documents or examples to pack: JSON lines, a folder, "
                        "or a token file",
                        tokens->path);
    if (tokenizer->has_eos || tokenizer->has_bos)
        return AH_OK;
    return ah__fail(AH_EINPUT,
                    "%s: found no tokenizer beside the model, expected one to pack by: it says which token "
                    "ends a document",
                    tokens->path);
}

static int open_all(struct ah_tokens *tokens, const struct ah_tokenizer *tokenizer,
                    const struct ah_tokens_options *options)
{
    const char *path = tokens->path;
    int64_t seq = options->seq;
    double val_fraction = options->val_fraction;
    if (seq < 1 || seq == INT64_MAX || !(val_fraction >= 0 && val_fraction <= 0.5))
        return ah__fail(AH_EINPUT, "found seq %lld and validation part %g, expected at least 1 and 0 to 0.5",
                        (long long)seq, val_fraction);
    AH_TRY(layout_read(tokens, path, tokenizer, options));
    AH_TRY(pack_check(tokens, tokenizer));
    AH_TRY(split(tokens, path, seq, val_fraction));
    AH_TRY(content_check(tokens, path, tokenizer, tokens->vocab_size, options->known));
    if (tokens->corpus.ids)
        tokens->info.stamp = (struct ah_file_stamp){.bytes = tokens->corpus.bytes};
    return AH_OK;
}

int ah__tokens_open_with(struct ah_tokens **out, const char *path, const struct ah_tokenizer *tokenizer,
                         int64_t vocab_size, const struct ah_tokens_options *options)
{
    struct ah_tokens *tokens;
    AH_TRY(ah__new(&tokens, 1, sizeof *tokens));
    tokens->fd = -1;
    tokens->vocab_size = vocab_size;
    tokens->packed = options->pack;
    tokens->document_end = ah__document_end(tokenizer);
    int status = path_open(tokens, path);
    if (status == AH_OK)
        status = open_all(tokens, tokenizer, options);
    ah__map_close(&tokens->map);
    tokens->data = NULL;
    if (status != AH_OK) {
        ah__tokens_close(tokens);
        return status;
    }
    *out = tokens;
    return AH_OK;
}

int ah__tokens_open(struct ah_tokens **out, const char *path, const struct ah_tokenizer *tokenizer, int64_t vocab_size,
                    int64_t seq, double val_fraction, const struct ah_tokens_known *known)
{
    const struct ah_tokens_options options = {.seq = seq, .val_fraction = val_fraction, .known = known};
    return ah__tokens_open_with(out, path, tokenizer, vocab_size, &options);
}

void ah__tokens_close(struct ah_tokens *tokens)
{
    if (!tokens)
        return;
    if (tokens->fd >= 0)
        close(tokens->fd);
    if (tokens->encoded != tokens->corpus.ids)
        ah__free(tokens->encoded);
    ah__corpus_free(&tokens->corpus);
    ah__pack_free(&tokens->train);
    ah__pack_free(&tokens->val);
    ah__free(tokens->path);
    ah__free(tokens);
}

const struct ah_tokens_info *ah__tokens_info(const struct ah_tokens *tokens)
{
    return &tokens->info;
}

const char *ah__tokens_format(const struct ah_tokens_info *info)
{
    return info->examples && info->form != AH_DATA_AUTO ? ah__data_format_words[info->form] : info->format;
}
