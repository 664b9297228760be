#include <string.h>

#include "base/hash.h"
#include "data/tokens_internal.h"

/* A Feistel network: a bijection whatever its round function is. */
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

/* The network's domain is the next power of four. Repeating it until a value falls below count stays on a cycle of the
 * bijection, so that the result is a bijection, too. */
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
    unsigned char bytes[4 * PIECE];
    if (tokens->encoded) {
        memcpy(to, tokens->encoded + first, (size_t)count * sizeof *to);
        return AH_OK;
    }
    for (int64_t done = 0; done < count;) {
        int64_t piece = count - done < PIECE ? count - done : PIECE;
        AH_TRY(ah__file_read_at(tokens->fd, bytes, (size_t)(piece * tokens->width),
                                tokens->offset + (first + done) * tokens->width, tokens->path));
        for (int64_t i = 0; i < piece; i++, done++) {
            uint32_t token = 0; /* little-endian: the low bytes come first */
            memcpy(&token, bytes + i * tokens->width, (size_t)tokens->width);
            if (token >= tokens->vocab_size)
                return ah__fail(AH_EIO,
                                "%s: token %lld: found %u, expected one below %lld: the file was changed since "
                                "it was opened",
                                tokens->path, (long long)(first + done), token, (long long)tokens->vocab_size);
            to[done] = (int32_t)token;
        }
    }
    return AH_OK;
}

/* Returns the part of a batch that starts at element `at`. */
static struct ah_batch row_of(const struct ah_batch *to, int64_t at)
{
    return (struct ah_batch){to->ids + at, to->targets + at, to->positions ? to->positions + at : NULL};
}

/* Copies an example. Each id's target is the next id if that is learned. The last id is only a target. */
static void example_copy(const struct ah_tokens *tokens, int64_t index, const struct ah_batch *to)
{
    const struct ah_example *example = &tokens->corpus.examples[index];
    const int32_t *from = tokens->corpus.ids + example->first;
    const bool *learned = tokens->corpus.learned + example->first;
    for (int64_t i = 0; i + 1 < example->length; i++) {
        to->ids[i] = from[i];
        to->targets[i] = learned[i + 1] ? from[i + 1] : AH_TARGET_IGNORED;
        if (to->positions)
            to->positions[i] = (int32_t)i;
    }
}

/* Fills the rest of a window with zeros that are not learned and that no token sees. */
static void rest_fill(const struct ah_batch *to, int64_t from, int64_t seq)
{
    for (int64_t i = from; i < seq; i++) {
        to->ids[i] = 0;
        to->targets[i] = AH_TARGET_IGNORED;
        if (to->positions)
            to->positions[i] = 0;
    }
}

static void pack_copy(const struct ah_tokens *tokens, const struct ah_pack *pack, int64_t index,
                      const struct ah_batch *to)
{
    int64_t used = 0;
    for (int64_t m = pack->first[index]; m < pack->first[index + 1]; m++) {
        const struct ah_batch at = row_of(to, used);
        example_copy(tokens, pack->members[m], &at);
        used += tokens->corpus.examples[pack->members[m]].length - 1;
    }
    rest_fill(to, used, tokens->info.seq);
}

/* Starts positions again after each document's end, which has no target: it does not predict the next document. */
static void documents_part(const struct ah_tokens *tokens, const struct ah_batch *to)
{
    int32_t position = 0;
    for (int64_t i = 0; i < tokens->info.seq; i++) {
        bool end = to->ids[i] == tokens->document_end;
        to->positions[i] = position;
        position = end ? 0 : position + 1;
        if (end)
            to->targets[i] = AH_TARGET_IGNORED;
    }
}

/* Copies neighbouring tokens from `first` on. */
static int text_copy(const struct ah_tokens *tokens, int64_t first, const struct ah_batch *to)
{
    int64_t seq = tokens->info.seq;
    AH_TRY(ah__tokens_read(tokens, first, seq, to->ids));
    memcpy(to->targets, to->ids + 1, (size_t)(seq - 1) * sizeof *to->ids);
    AH_TRY(ah__tokens_read(tokens, first + seq, 1, to->targets + seq - 1));
    if (tokens->packed)
        documents_part(tokens, to);
    return AH_OK;
}

/* Copies window `index` of the training part or of the validation part. */
static int window_copy(const struct ah_tokens *tokens, int64_t index, bool val, const struct ah_batch *to)
{
    const struct ah_tokens_info *info = &tokens->info;
    if (!tokens->corpus.examples)
        return text_copy(tokens, (val ? info->tokens - info->val_tokens : 0) + index * info->seq, to);
    if (tokens->packed) {
        pack_copy(tokens, val ? &tokens->val : &tokens->train, index, to);
        return AH_OK;
    }
    index += val ? tokens->corpus.example_count - info->val_windows : 0;
    const struct ah_example *example = &tokens->corpus.examples[index];
    example_copy(tokens, index, to);
    rest_fill(to, example->length - 1, info->seq);
    if (example->length <= info->seq)
        to->ids[example->length - 1] = tokens->corpus.ids[example->first + example->length - 1];
    return AH_OK;
}

int ah__tokens_batch(const struct ah_tokens *tokens, int64_t n, int64_t batch, uint64_t seed, const struct ah_batch *to)
{
    uint64_t windows = (uint64_t)tokens->info.train_windows;
    for (int64_t row = 0; row < batch; row++) {
        uint64_t sample = (uint64_t)n * (uint64_t)batch + (uint64_t)row, epoch = sample / windows;
        uint64_t window = ah__permute(sample % windows, windows, ah__random_bits(seed, epoch));
        const struct ah_batch at = row_of(to, row * tokens->info.seq);
        AH_TRY(window_copy(tokens, (int64_t)window, false, &at));
    }
    return AH_OK;
}

int ah__tokens_val_batch(const struct ah_tokens *tokens, int64_t n, int64_t batch, const struct ah_batch *to)
{
    uint64_t windows = (uint64_t)tokens->info.val_windows;
    for (int64_t row = 0; row < batch; row++) {
        uint64_t window = ((uint64_t)n * (uint64_t)batch + (uint64_t)row) % windows;
        const struct ah_batch at = row_of(to, row * tokens->info.seq);
        AH_TRY(window_copy(tokens, (int64_t)window, true, &at));
    }
    return AH_OK;
}
