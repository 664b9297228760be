#include "io/tokens.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tokens are used as they lie in the file, little-endian"
#endif

enum { HEADER_INTS = 256, HEADER_BYTES = HEADER_INTS * 4, TOKEN_MAGIC = 20240520, TOKEN_VERSION = 1 };

/* The map serves to look the whole file over; batches are read, since a map of a file that is cut short kills. */
struct ah_tokens {
    struct ah_map map;         /* only while opening */
    int fd;                    /* -1: not open */
    char *path;                /* for messages */
    int32_t *encoded;          /* a text's tokens when they are not its bytes, else null and: */
    const unsigned char *data; /* the first token in the map */
    int64_t offset;            /* and in the file */
    int width;                 /* bytes of a token there: 1 or 2 */
    int64_t vocab_size;        /* every token is below */
    struct ah_tokens_info info;
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *path, const char *end)
{
    size_t length = strlen(path), tail = strlen(end);
    return length >= tail && strcmp(path + length - tail, end) == 0;
}

/* What is no text must not be learned as if it were. */
static int text_check(const struct ah_map *map, const char *path)
{
    enum { LOOKED_AT = 1 << 20 };
    static const struct {
        const char *start, *what;
    } packed[] = {{"\x1f\x8b", "gzip"},
                  {"\x28\xb5\x2f\xfd", "zstd"},
                  {"\xfd\x37zXZ", "xz"},
                  {"BZh", "bzip2"},
                  {"PK\x03\x04", "zip"}};
    for (size_t i = 0; i < AH_LENGTH(packed); i++)
        if (map->length >= strlen(packed[i].start) && memcmp(map->data, packed[i].start, strlen(packed[i].start)) == 0)
            return ah__fail(AH_EINPUT, "%s: found data packed by %s, expected text or an llm.c token file", path,
                            packed[i].what);
    size_t looked_at = map->length < LOOKED_AT ? map->length : LOOKED_AT;
    const unsigned char *zero = memchr(map->data, 0, looked_at);
    if (zero)
        return ah__fail(AH_EINPUT, "%s: found a zero byte at %zu, expected text or an llm.c token file", path,
                        (size_t)(zero - map->data));
    if (ends_with(path, ".jsonl"))
        return ah__fail(AH_EINPUT, "%s: found JSON lines, which are not read yet, expected text or an llm.c token file",
                        path);
    return AH_OK;
}

static int text_read(struct ah_tokens *tokens, const char *path, const struct ah_tokenizer *tokenizer)
{
    const struct ah_map *map = &tokens->map;
    AH_TRY(text_check(map, path));
    tokens->info.tokens = (int64_t)map->length;
    tokens->data = map->data;
    tokens->width = 1;
    if (tokenizer->text_is_ids)
        return AH_OK;
    int status = tokenizer->encode(&tokens->encoded, &tokens->info.tokens, tokenizer, (const char *)map->data,
                                   map->length);
    return status == AH_OK ? AH_OK : ah__fail_prefix(status, "%s", path);
}

/* A file with the magic number is a token file or broken; without it, it is text. */
static int layout_read(struct ah_tokens *tokens, const char *path, const struct ah_tokenizer *tokenizer)
{
    const struct ah_map *map = &tokens->map;
    int32_t header[3] = {0};
    memcpy(header, map->data, map->length < sizeof header ? map->length : sizeof header);
    tokens->info.text = map->length < sizeof header[0] || header[0] != TOKEN_MAGIC;
    if (tokens->info.text)
        return text_read(tokens, path, tokenizer);
    if (map->length < HEADER_BYTES)
        return ah__fail(AH_ECORRUPT, "%s: found %zu bytes, expected a token file's header of %d", path, map->length,
                        HEADER_BYTES);
    if (header[1] != TOKEN_VERSION)
        return ah__fail(AH_EINPUT, "%s: found token file version %d, expected %d (16-bit tokens)", path, header[1],
                        TOKEN_VERSION);
    if (header[2] < 0 || map->length - HEADER_BYTES != 2 * (size_t)header[2])
        return ah__fail(AH_ECORRUPT, "%s: found %zu bytes of tokens, expected 2 for each of %d tokens by the header",
                        path, map->length - HEADER_BYTES, header[2]);
    tokens->data = map->data + HEADER_BYTES;
    tokens->offset = HEADER_BYTES;
    tokens->width = 2;
    tokens->info.tokens = header[2];
    return AH_OK;
}

static int32_t token_at(const struct ah_tokens *tokens, int64_t index)
{
    uint16_t token;
    if (tokens->encoded)
        return tokens->encoded[index];
    if (tokens->width == 1)
        return tokens->data[index];
    memcpy(&token, tokens->data + 2 * index, sizeof token);
    return token;
}

static int32_t bytes_max(const unsigned char *data, int64_t count)
{
    unsigned char max = 0;
    for (int64_t i = 0; i < count; i++)
        max = data[i] > max ? data[i] : max;
    return max;
}

static int32_t words_max(const unsigned char *data, int64_t count)
{
    uint16_t max = 0;
    for (int64_t i = 0; i < count; i++) {
        uint16_t token;
        memcpy(&token, data + 2 * i, sizeof token);
        max = token > max ? token : max;
    }
    return max;
}

static int32_t ids_max(const int32_t *ids, int64_t count)
{
    int32_t max = 0;
    for (int64_t i = 0; i < count; i++)
        max = ids[i] > max ? ids[i] : max;
    return max;
}

static int32_t tokens_max(const struct ah_tokens *tokens)
{
    if (tokens->encoded)
        return ids_max(tokens->encoded, tokens->info.tokens);
    return tokens->width == 1 ? bytes_max(tokens->data, tokens->info.tokens)
                              : words_max(tokens->data, tokens->info.tokens);
}

/* The largest token first, a loop the compiler vectorises; its place is sought only for the message. */
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
    return ah__fail(AH_EINPUT, "%s: %s %lld: found %d, expected a token below the model's vocab_size %lld", path,
                    text ? tokenizer->unit : "token", (long long)at, token_at(tokens, at), (long long)vocab_size);
}

/* Cuts off the validation part when both parts then have a window. */
static int tokens_split(struct ah_tokens *tokens, const char *path, int64_t seq, double val_fraction)
{
    struct ah_tokens_info *info = &tokens->info;
    int64_t count = info->tokens;
    if (seq < 1 || seq == INT64_MAX || !(val_fraction >= 0 && val_fraction <= 0.5))
        return ah__fail(AH_EINPUT, "found seq %lld and validation part %g, expected at least 1 and 0 to 0.5",
                        (long long)seq, val_fraction);
    if (seq >= count)
        return ah__fail(AH_EINPUT,
                        "%s: found %lld tokens, expected at least %lld (one sequence of %lld and its target)", path,
                        (long long)count, (long long)seq + 1, (long long)seq);
    int64_t val = (int64_t)((double)count * val_fraction);
    if (val < seq + 1)
        val = seq + 1;
    info->held_out = val_fraction > 0 && count - val > seq;
    info->val_tokens = info->held_out ? val : count;
    info->train_tokens = info->held_out ? count - val : count;
    info->seq = seq;
    info->train_windows = (info->train_tokens - 1) / seq;
    info->val_windows = (info->val_tokens - 1) / seq;
    return AH_OK;
}

/* Of every byte: a training that goes on with other data must be told. */
static uint64_t map_signature(const struct ah_map *map, uint64_t seed)
{
    return ah__hash(map->data, map->length, ah__hash_int(map->length, seed));
}

static bool same_stamp(const struct ah_file_stamp *a, const struct ah_file_stamp *b)
{
    return a->bytes == b->bytes && a->modified_ns == b->modified_ns && a->inode == b->inode;
}

/* Reads every byte, unless it is known what that would give. */
static int content_check(struct ah_tokens *tokens, const char *path, const struct ah_tokenizer *tokenizer,
                         int64_t vocab_size, const struct ah_tokens_known *known)
{
    struct ah_tokens_info *info = &tokens->info;
    info->tokenizer = info->text ? tokenizer->signature : 0;
    if (known && same_stamp(&known->stamp, &info->stamp) && known->tokenizer == info->tokenizer &&
        known->vocab_size <= vocab_size) {
        info->signature = known->signature;
        return AH_OK;
    }
    AH_TRY(tokens_check(tokens, path, tokenizer, vocab_size));
    info->signature = map_signature(&tokens->map, info->tokenizer);
    return AH_OK;
}

static int file_open(struct ah_tokens *tokens, const char *path)
{
    AH_TRY(ah__strdup(&tokens->path, path));
    AH_TRY(ah__file_open(&tokens->fd, &tokens->info.stamp, path));
    return ah__map_open(&tokens->map, path);
}

int ah__tokens_open(struct ah_tokens **out, const char *path, const struct ah_tokenizer *tokenizer, int64_t vocab_size,
                    int64_t seq, double val_fraction, const struct ah_tokens_known *known)
{
    struct ah_tokens *tokens;
    AH_TRY(ah__new(&tokens, 1, sizeof *tokens));
    tokens->fd = -1;
    tokens->vocab_size = vocab_size;
    int status = file_open(tokens, path);
    if (status == AH_OK)
        status = layout_read(tokens, path, tokenizer);
    if (status == AH_OK)
        status = tokens_split(tokens, path, seq, val_fraction);
    if (status == AH_OK)
        status = content_check(tokens, path, tokenizer, vocab_size, known);
    ah__map_close(&tokens->map);
    tokens->data = NULL;
    if (status != AH_OK) {
        ah__tokens_close(tokens);
        return status;
    }
    *out = tokens;
    return AH_OK;
}

void ah__tokens_close(struct ah_tokens *tokens)
{
    if (!tokens)
        return;
    if (tokens->fd >= 0)
        close(tokens->fd);
    ah__free(tokens->path);
    ah__free(tokens->encoded);
    ah__free(tokens);
}

const struct ah_tokens_info *ah__tokens_info(const struct ah_tokens *tokens)
{
    return &tokens->info;
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* A Feistel network is a bijection whatever its round function is. */
static uint64_t feistel(uint64_t value, int half_bits, uint64_t seed)
{
    enum { ROUNDS = 6 };
    uint64_t mask = (UINT64_C(1) << half_bits) - 1, left = value >> half_bits, right = value & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t next = left ^ (ah__random_bits(seed + round, right) & mask);
        left = right;
        right = next;
    }
    return left << half_bits | right;
}

/* Its domain is the next power of four; going on until a value falls below count stays on the cycle, so this is a
 * bijection too. */
uint64_t ah__permute(uint64_t index, uint64_t count, uint64_t seed)
{
    int half_bits = 1;
    while (half_bits < 31 && UINT64_C(1) << (2 * half_bits) < count)
        half_bits++;
    do
        index = feistel(index, half_bits, seed);
    while (index >= count);
    return index;
}

int ah__tokens_read(const struct ah_tokens *tokens, int64_t first, int64_t count, int32_t *to)
{
    enum { PIECE = 2048 };
    unsigned char bytes[2 * PIECE];
    if (tokens->encoded) {
        memcpy(to, tokens->encoded + first, (size_t)count * sizeof *to);
        return AH_OK;
    }
    for (int64_t done = 0; done < count;) {
        int64_t piece = count - done < PIECE ? count - done : PIECE;
        AH_TRY(ah__file_read_at(tokens->fd, bytes, (size_t)(piece * tokens->width),
                                tokens->offset + (first + done) * tokens->width, tokens->path));
        for (int64_t i = 0; i < piece; i++, done++) {
            uint16_t token = bytes[i];
            if (tokens->width == 2)
                memcpy(&token, bytes + 2 * i, sizeof token);
            if (token >= tokens->vocab_size)
                return ah__fail(AH_EIO, "%s: token %lld: found %d, expected one below %lld: the file was changed since "
                                "it was opened", tokens->path, (long long)(first + done), token,
                                (long long)tokens->vocab_size);
            to[done] = token;
        }
    }
    return AH_OK;
}

static int window_copy(const struct ah_tokens *tokens, int64_t first, int32_t *ids, int32_t *targets)
{
    int64_t seq = tokens->info.seq;
    AH_TRY(ah__tokens_read(tokens, first, seq, ids));
    memcpy(targets, ids + 1, (size_t)(seq - 1) * sizeof *ids);
    return ah__tokens_read(tokens, first + seq, 1, targets + seq - 1);
}

int ah__tokens_batch(const struct ah_tokens *tokens, int64_t n, int64_t batch, uint64_t seed, int32_t *ids,
                     int32_t *targets)
{
    uint64_t windows = (uint64_t)tokens->info.train_windows;
    int64_t seq = tokens->info.seq;
    for (int64_t row = 0; row < batch; row++) {
        uint64_t sample = (uint64_t)n * (uint64_t)batch + (uint64_t)row, epoch = sample / windows;
        uint64_t window = ah__permute(sample % windows, windows, ah__random_bits(seed, epoch));
        AH_TRY(window_copy(tokens, (int64_t)window * seq, ids + row * seq, targets + row * seq));
    }
    return AH_OK;
}

int ah__tokens_val_batch(const struct ah_tokens *tokens, int64_t n, int64_t batch, int32_t *ids, int32_t *targets)
{
    const struct ah_tokens_info *info = &tokens->info;
    for (int64_t row = 0; row < batch; row++) {
        int64_t window = (int64_t)(((uint64_t)n * (uint64_t)batch + (uint64_t)row) % (uint64_t)info->val_windows);
        AH_TRY(window_copy(tokens, info->tokens - info->val_tokens + window * info->seq, ids + row * info->seq,
                           targets + row * info->seq));
    }
    return AH_OK;
}
