/* Three bytes of settings, then any bytes as a data file, packed or not: refused, or every batch holds tokens of the
 * vocabulary. */
#include "data/tokens.h"
#include "fuzz.h"
#include "op/op.h"

enum { FUZZ_SEQ_MOST = 16, FUZZ_BATCH = 3 };

int FUZZ_TARGET(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    char path[64];
    struct ah_tokens *tokens = NULL;
    int32_t ids[FUZZ_BATCH * FUZZ_SEQ_MOST], targets[FUZZ_BATCH * FUZZ_SEQ_MOST];
    int64_t vocab = data[0] + 1 + (data[1] & 0x80 ? 65280 : 0), seq = data[1] % FUZZ_SEQ_MOST + 1;
    int fd = fuzz_file(path, sizeof path, data + 3, size - 3);
    int status = ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, vocab, seq, data[2] / 510.0, NULL);
    FUZZ_CHECK(status == AH_OK || status == AH_EINPUT || status == AH_ECORRUPT);
    for (int64_t n = 0; status == AH_OK && n < 6; n++) {
        if (n < 3)
            ah__tokens_batch(tokens, n << (10 * n), FUZZ_BATCH, data[2], &(struct ah_batch){ids, targets, NULL});
        else
            ah__tokens_val_batch(tokens, n, FUZZ_BATCH, &(struct ah_batch){ids, targets, NULL});
        for (int64_t i = 0; i < FUZZ_BATCH * seq; i++)
            FUZZ_CHECK(ids[i] >= 0 && ids[i] < vocab && targets[i] < vocab &&
                       (targets[i] >= 0 || targets[i] == AH_TARGET_IGNORED));
    }
    ah__tokens_close(tokens);
    close(fd);
    return 0;
}
