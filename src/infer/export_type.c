#include "infer/export_type.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"

/* Types that export writes, with llama.cpp's number for files of each. */
static const struct {
    const char *word;
    uint32_t id, file_type;
} types[] = {{"f16", AH_GGUF_F16, 1}, {"bf16", AH_GGUF_BF16, 32}, {"f32", AH_GGUF_F32, 0}, {"q8_0", AH_GGUF_Q8_0, 7}};

/* Other types, which llama-quantize makes. */
static const char *const others[] = {"Q1_0",   "Q2_0",   "Q4_0",   "Q4_1",   "Q5_0",    "Q5_1",     "Q2_K",
                                     "Q2_K_S", "Q3_K",   "Q3_K_S", "Q3_K_M", "Q3_K_L",  "Q4_K",     "Q4_K_S",
                                     "Q4_K_M", "Q5_K",   "Q5_K_S", "Q5_K_M", "Q6_K",    "IQ1_S",    "IQ1_M",
                                     "IQ2_S",  "IQ2_M",  "IQ2_XS", "IQ3_S",  "IQ2_XXS", "IQ3_XXS",  "IQ3_M",
                                     "IQ3_XS", "IQ4_NL", "IQ4_XS", "TQ1_0",  "TQ2_0",   "MXFP4_MOE"};

int ah__export_type(const struct ah_gguf_type **out, const char *word)
{
    for (size_t i = 0; i < AH_LENGTH(types); i++)
        if (strcasecmp(word, types[i].word) == 0) {
            *out = ah__gguf_type(types[i].id);
            return AH_OK;
        }
    for (size_t i = 0; i < AH_LENGTH(others); i++)
        if (strcasecmp(word, others[i]) == 0)
            return ah__fail(AH_EINPUT,
                            "type: found '%s', expected f16, bf16, f32 or q8_0; llama.cpp makes it of a file in f16 or "
                            "bf16: llama-quantize FILE.gguf NEW.gguf %s",
                            word, others[i]);
    return ah__fail(AH_EINPUT, "type: found '%.40s', expected f16, bf16, f32 or q8_0", word);
}

const struct ah_gguf_type *ah__export_stored(const struct ah_gguf_type *asked, const struct ah_shape *shape)
{
    if (shape->rank < 2)
        return ah__gguf_type(AH_GGUF_F32);
    return shape->dim[shape->rank - 1] % asked->block ? ah__gguf_type(AH_GGUF_F16) : asked;
}

void ah__export_put_type(struct ah_gguf_writer *writer, const struct ah_gguf_type *type)
{
    for (size_t i = 0; i < AH_LENGTH(types); i++)
        if (types[i].id == type->id)
            ah__gguf_put_int(writer, "general.file_type", types[i].file_type);
    ah__gguf_put_int(writer, "general.quantization_version", 2);
}
