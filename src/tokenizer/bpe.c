#include "tokenizer/bpe.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "tokenizer/bpe_heap.h"
#include "tokenizer/bpe_table.h"
#include "tokenizer/utf8.h"

enum { CACHE_SLOTS = 1 << 15, CACHE_TEXT = 22, CACHE_IDS = 8, SCANNED_MOST = 40, WORD_MOST = 1 << 30 };

/* A cached word and its ids, in one cache line. */
struct remembered {
    uint64_t hash;
    uint8_t length, count; /* length 0: no word */
    char text[CACHE_TEXT];
    int32_t ids[CACHE_IDS];
};
_Static_assert(sizeof(struct remembered) == 64, "a remembered word is one cache line");

struct ah_bpe {
    struct ah_bpe_options options; /* options.merges is null */
    struct ah_bpe_table merges;
    struct ah_char_pairs pairs; /* pairs of adjacent characters in merged tokens */
    bool cuts;                  /* words may be cut between characters that are not in `pairs` */
    int32_t ascii_ids[128];     /* ids of ASCII characters */
    struct remembered *cache;   /* [CACHE_SLOTS] */
    struct ah_ids symbols;      /* symbols of the current word */
    struct ah_bpe_heap heap;
};

int ah__ids_add(struct ah_ids *to, const int32_t *ids, size_t count)
{
    if (to->count + count > to->room)
        AH_TRY(ah__grow(&to->ids, &to->room, to->count + count, sizeof *to->ids));
    for (size_t i = 0; i < count; i++)
        to->ids[to->count + i] = ids[i];
    to->count += count;
    return AH_OK;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* Returns true if the token may replace a character that is not its text: the unknown token, a byte like <0x0A>. */
static bool stands_in(const struct ah_bpe_options *options, int32_t id)
{
    size_t length = 0;
    const char *text = ah__token_map_text(&length, options->vocab, id);
    return id == options->unknown || (text && length == 6 && strncmp(text, "<0x", 3) == 0);
}

/* Returns true if cutting words changes no ids. This holds if each character is a symbol (or several, or the unknown
 * token) with any neighbours, and each merged token contains the characters of its halves. */
static bool may_cut(const struct ah_bpe_options *options)
{
    bool all_bytes = options->byte_fallback;
    if (options->bytes || options->ignore_merges)
        return false;
    for (int i = 0; i < 256; i++)
        all_bytes = all_bytes && options->byte_ids[i] >= 0;
    if (!all_bytes && (options->byte_fallback || options->unknown < 0 || options->fuse_unknown))
        return false;
    for (size_t i = 0; i < options->merge_count; i++)
        if (stands_in(options, options->merges[i].left) || stands_in(options, options->merges[i].right))
            return false;
    return true;
}

static int pairs_fill(struct ah_bpe *bpe, const struct ah_bpe_options *options)
{
    for (size_t i = 0; i < options->merge_count; i++) {
        size_t length, bytes;
        const char *text = ah__token_map_text(&length, options->vocab, options->merges[i].merged);
        for (size_t at = 0; at < length; at += bytes) {
            bytes = ah__utf8_bytes(text[at]);
            if (at + bytes < length)
                AH_TRY(ah__char_pairs_add(&bpe->pairs, ah__utf8_code(text + at, bytes),
                                          ah__utf8_code(text + at + bytes, ah__utf8_bytes(text[at + bytes]))));
        }
    }
    return AH_OK;
}

static int bpe_init(struct ah_bpe *bpe, const struct ah_bpe_options *options)
{
    bpe->options = *options;
    bpe->options.merges = NULL;
    for (int i = 0; i < 128; i++)
        bpe->ascii_ids[i] = ah__token_map_find(options->vocab, &(char){(char)i}, 1);
    AH_TRY(ah__bpe_table_init(&bpe->merges, options->merges, options->merge_count));
    AH_TRY(ah__new(&bpe->cache, CACHE_SLOTS, sizeof *bpe->cache));
    bpe->cuts = may_cut(options);
    return bpe->cuts ? pairs_fill(bpe, options) : AH_OK;
}

int ah__bpe_new(struct ah_bpe **out, const struct ah_bpe_options *options)
{
    struct ah_bpe *bpe;
    AH_TRY(ah__new(&bpe, 1, sizeof *bpe));
    int status = bpe_init(bpe, options);
    if (status != AH_OK) {
        ah__bpe_free(bpe);
        return status;
    }
    *out = bpe;
    return AH_OK;
}

void ah__bpe_free(struct ah_bpe *bpe)
{
    if (!bpe)
        return;
    ah__bpe_table_fini(&bpe->merges);
    ah__char_pairs_fini(&bpe->pairs);
    ah__bpe_heap_fini(&bpe->heap);
    ah__free(bpe->cache);
    ah__free(bpe->symbols.ids);
    ah__free(bpe);
}

/* ---- symbols ----------------------------------------------------------------------------------------------------- */

static int byte_symbols(struct ah_bpe *bpe, const char *word, size_t length, int32_t *unknown)
{
    struct ah_ids *symbols = &bpe->symbols;
    for (size_t i = 0; i < length; i++) {
        int32_t id = bpe->options.byte_ids[(unsigned char)word[i]];
        if (id < 0)
            id = bpe->options.unknown;
        if (id < 0 || (bpe->options.fuse_unknown && id == bpe->options.unknown && *unknown == id))
            continue;
        symbols->ids[symbols->count++] = id;
        *unknown = id;
    }
    return AH_OK;
}

static bool fallback_symbols(struct ah_bpe *bpe, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (bpe->options.byte_ids[(unsigned char)text[i]] < 0)
            return false;
    for (size_t i = 0; i < bytes; i++)
        bpe->symbols.ids[bpe->symbols.count++] = bpe->options.byte_ids[(unsigned char)text[i]];
    return true;
}

/* Fills the symbols of a word of characters. The id of an unknown character is added once it is known whether the next
 * one joins it; bytes of a fallback are added before it, as in the tokenizers library. */
static void char_symbols(struct ah_bpe *bpe, const char *word, size_t length)
{
    struct ah_ids *symbols = &bpe->symbols;
    bool waits = false;
    size_t bytes;
    for (size_t at = 0; at < length; at += bytes) {
        bytes = ah__utf8_bytes(word[at]);
        int32_t id = bytes == 1 ? bpe->ascii_ids[(unsigned char)word[at]]
                                : ah__token_map_find(bpe->options.vocab, word + at, bytes);
        if (id < 0 && bpe->options.byte_fallback && fallback_symbols(bpe, word + at, bytes))
            continue;
        if (waits && (id >= 0 || !bpe->options.fuse_unknown))
            symbols->ids[symbols->count++] = bpe->options.unknown;
        waits = id < 0 && bpe->options.unknown >= 0;
        if (id >= 0)
            symbols->ids[symbols->count++] = id;
    }
    if (waits)
        symbols->ids[symbols->count++] = bpe->options.unknown;
}

/* Fills the symbols of a word. There are at most as many as bytes. */
static int symbols_fill(struct ah_bpe *bpe, const char *word, size_t length)
{
    int32_t last = -1;
    if (length >= WORD_MOST)
        return ah__fail(AH_EINPUT, "found a word of %zu bytes, expected less than %d", length, WORD_MOST);
    AH_TRY(ah__grow(&bpe->symbols.ids, &bpe->symbols.room, length, sizeof *bpe->symbols.ids));
    bpe->symbols.count = 0;
    if (bpe->options.bytes)
        return byte_symbols(bpe, word, length, &last);
    char_symbols(bpe, word, length);
    return AH_OK;
}

/* ---- merging ----------------------------------------------------------------------------------------------------- */

/* Merges few symbols: searches for the best pair again and again. */
static size_t scan_merge(const struct ah_bpe_table *table, int32_t *ids, size_t count)
{
    const struct ah_bpe_slot *found[SCANNED_MOST];
    for (size_t i = 0; i + 1 < count; i++)
        found[i] = ah__bpe_table_find(table, ids[i], ids[i + 1]);
    while (count > 1) {
        size_t best = count;
        for (size_t i = 0; i + 1 < count; i++)
            if (found[i] && (best == count || found[i]->rank < found[best]->rank))
                best = i;
        if (best == count)
            break;
        ids[best] = found[best]->merged;
        count--;
        for (size_t i = best + 1; i < count; i++) {
            ids[i] = ids[i + 1];
            found[i - 1] = found[i];
        }
        if (best + 1 < count)
            found[best] = ah__bpe_table_find(table, ids[best], ids[best + 1]);
        if (best > 0)
            found[best - 1] = ah__bpe_table_find(table, ids[best - 1], ids[best]);
    }
    return count;
}

static int word_merge(struct ah_bpe *bpe, const char *word, size_t length)
{
    struct ah_ids *symbols = &bpe->symbols;
    AH_TRY(symbols_fill(bpe, word, length));
    if (symbols->count > SCANNED_MOST)
        return ah__bpe_heap_merge(&bpe->heap, &bpe->merges, symbols->ids, &symbols->count);
    symbols->count = scan_merge(&bpe->merges, symbols->ids, symbols->count);
    return AH_OK;
}

/* Computes the ids of a word in bpe->symbols. */
static int word_resolve(struct ah_bpe *bpe, const char *word, size_t length)
{
    int32_t id = bpe->options.ignore_merges ? ah__token_map_find(bpe->options.words, word, length) : -1;
    if (id < 0)
        return word_merge(bpe, word, length);
    bpe->symbols.count = 0;
    return ah__ids_add(&bpe->symbols, &id, 1);
}

static void remember(struct remembered *slot, uint64_t hash, const char *word, size_t length,
                     const struct ah_ids *symbols)
{
    if (symbols->count > CACHE_IDS)
        return;
    slot->hash = hash;
    slot->length = (uint8_t)length;
    slot->count = (uint8_t)symbols->count;
    memcpy(slot->text, word, length);
    memcpy(slot->ids, symbols->ids, symbols->count * sizeof *symbols->ids);
}

static int word_encode(struct ah_ids *to, struct ah_bpe *bpe, const char *word, size_t length)
{
    struct remembered *slot = NULL;
    uint64_t hash = 0;
    if (length <= CACHE_TEXT) {
        hash = ah__hash(word, length, 0);
        slot = &bpe->cache[hash % CACHE_SLOTS];
        if (slot->hash == hash && slot->length == length && memcmp(slot->text, word, length) == 0)
            return ah__ids_add(to, slot->ids, slot->count);
    }
    AH_TRY(word_resolve(bpe, word, length));
    if (slot)
        remember(slot, hash, word, length, &bpe->symbols);
    return ah__ids_add(to, bpe->symbols.ids, bpe->symbols.count);
}

/* Encodes a word in pieces, cut where no merge can reach across. */
static int pieces_encode(struct ah_ids *to, struct ah_bpe *bpe, const char *word, size_t length)
{
    size_t start = 0, bytes = ah__utf8_bytes(word[0]);
    uint32_t before = ah__utf8_code(word, bytes);
    for (size_t at = bytes; at < length; at += bytes) {
        bytes = ah__utf8_bytes(word[at]);
        uint32_t code = ah__utf8_code(word + at, bytes);
        if (!ah__char_pairs_has(&bpe->pairs, before, code)) {
            AH_TRY(word_encode(to, bpe, word + start, at - start));
            start = at;
        }
        before = code;
    }
    return word_encode(to, bpe, word + start, length - start);
}

int ah__bpe_encode(struct ah_ids *to, struct ah_bpe *bpe, const char *word, size_t length)
{
    if (length == 0)
        return AH_OK;
    return bpe->cuts ? pieces_encode(to, bpe, word, length) : word_encode(to, bpe, word, length);
}
