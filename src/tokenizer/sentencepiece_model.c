#include "tokenizer/sentencepiece_model.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/protobuf.h"
#include "tokenizer/token_map.h"
#include "tokenizer/utf8.h"

struct reading {
    struct ah_sentencepiece_model *model;
    const char *path;
};

static struct ah_sentencepiece_text text_of(const struct ah_protobuf_field *field)
{
    return (struct ah_sentencepiece_text){field->bytes, field->length};
}

static int fail_message(const struct reading *reading, const char *what)
{
    return ah__fail(AH_EINPUT, "%s: %s: found bytes that are no message of protocol buffers", reading->path, what);
}

/* Returns true if the field has this number and kind. Other fields are ignored, as protocol buffers require. */
static bool is(const struct ah_protobuf_field *field, uint32_t number, enum ah_protobuf_kind kind)
{
    return field->number == number && field->kind == kind;
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static int row_check(const struct reading *reading, const struct ah_token_row *row, uint64_t type)
{
    size_t number = reading->model->count;
    if (row->length == 0 || row->length > AH_PIECE_BYTES)
        return ah__fail(AH_EINPUT, "%s: piece %zu: found %zu bytes, expected 1 to %d", reading->path, number,
                        row->length, AH_PIECE_BYTES);
    if (memchr(row->text, 0, row->length) || !ah__utf8_good(row->text, row->length))
        return ah__fail(AH_EINPUT, "%s: piece %zu: found bytes that are no text of UTF-8", reading->path, number);
    if (type < AH_TOKEN_NORMAL || type > AH_TOKEN_BYTE)
        return ah__fail(AH_EINPUT, "%s: piece %zu: found type %llu, expected 1 to 6", reading->path, number,
                        (unsigned long long)type);
    if (!isfinite(row->score))
        return ah__fail(AH_EINPUT, "%s: piece %zu: found a score that is no number", reading->path, number);
    if (number >= AH_TOKEN_IDS_MOST)
        return ah__fail(AH_EINPUT, "%s: found more than %d pieces", reading->path, AH_TOKEN_IDS_MOST);
    return AH_OK;
}

static int piece_read(struct reading *reading, const struct ah_protobuf_field *message)
{
    struct ah_protobuf from = ah__protobuf_message(message);
    struct ah_protobuf_field field;
    struct ah_token_row row = {.text = ""};
    struct ah_sentencepiece_model *model = reading->model;
    uint64_t type = AH_TOKEN_NORMAL;
    while (ah__protobuf_next(&field, &from))
        if (is(&field, 1, AH_PROTOBUF_BYTES)) {
            row.text = field.bytes;
            row.length = field.length;
        } else if (is(&field, 2, AH_PROTOBUF_4_BYTES)) {
            uint32_t bits = (uint32_t)field.value;
            memcpy(&row.score, &bits, sizeof row.score);
        } else if (is(&field, 3, AH_PROTOBUF_INT)) {
            type = field.value;
        }
    if (from.wrong)
        return fail_message(reading, "pieces");
    AH_TRY(row_check(reading, &row, type));
    row.type = (enum ah_token_type)type;
    AH_TRY(ah__grow(&model->rows, &model->room, model->count + 1, sizeof *model->rows));
    model->rows[model->count++] = row;
    return AH_OK;
}

/* ---- how it was trained, how text is normalized ------------------------------------------------------------------ */

static int trainer_read(struct reading *reading, const struct ah_protobuf_field *message)
{
    enum { UNIGRAM = 1, BPE = 2 };
    struct ah_protobuf from = ah__protobuf_message(message);
    struct ah_protobuf_field field;
    struct ah_sentencepiece_model *model = reading->model;
    uint64_t type = UNIGRAM;
    while (ah__protobuf_next(&field, &from))
        if (is(&field, 3, AH_PROTOBUF_INT))
            type = field.value;
        else if (is(&field, 24, AH_PROTOBUF_INT))
            model->space_behind = field.value != 0;
        else if (is(&field, 35, AH_PROTOBUF_INT))
            model->byte_fallback = field.value != 0;
        else if (is(&field, 44, AH_PROTOBUF_BYTES))
            model->unknown_text = text_of(&field);
        else if (is(&field, 46, AH_PROTOBUF_BYTES))
            model->bos = text_of(&field);
        else if (is(&field, 47, AH_PROTOBUF_BYTES))
            model->eos = text_of(&field);
    if (from.wrong)
        return fail_message(reading, "trainer_spec");
    if (type != UNIGRAM && type != BPE)
        return ah__fail(AH_EINPUT, "%s: key 'trainer_spec.model_type': found %llu%s, expected 1 (unigram) or 2 (BPE)",
                        reading->path, (unsigned long long)type,
                        type == 3   ? " (word)"
                        : type == 4 ? " (char)"
                                    : "");
    if (memchr(model->unknown_text.text, 0, model->unknown_text.length) ||
        !ah__utf8_good(model->unknown_text.text, model->unknown_text.length))
        return ah__fail(AH_EINPUT, "%s: key 'trainer_spec.unk_surface': found bytes that are no text of UTF-8",
                        reading->path);
    model->unigram = type == UNIGRAM;
    return AH_OK;
}

static int normalizer_read(struct reading *reading, const struct ah_protobuf_field *message)
{
    struct ah_protobuf from = ah__protobuf_message(message);
    struct ah_protobuf_field field;
    struct ah_sentencepiece_model *model = reading->model;
    while (ah__protobuf_next(&field, &from))
        if (is(&field, 2, AH_PROTOBUF_BYTES))
            model->rules = text_of(&field);
        else if (is(&field, 3, AH_PROTOBUF_INT))
            model->adds_space = field.value != 0;
        else if (is(&field, 4, AH_PROTOBUF_INT))
            model->removes_spaces = field.value != 0;
        else if (is(&field, 5, AH_PROTOBUF_INT))
            model->escapes_spaces = field.value != 0;
    return from.wrong ? fail_message(reading, "normalizer_spec") : AH_OK;
}

/* Fails if there are rules for decoding. No known model has any. */
static int denormalizer_read(struct reading *reading, const struct ah_protobuf_field *message)
{
    struct ah_protobuf from = ah__protobuf_message(message);
    struct ah_protobuf_field field;
    while (ah__protobuf_next(&field, &from))
        if (is(&field, 2, AH_PROTOBUF_BYTES) && field.length)
            return ah__fail(AH_EINPUT,
                            "%s: key 'denormalizer_spec.precompiled_charsmap': found %zu bytes, expected none: "
                            "replacements in decoded text are not made here",
                            reading->path, field.length);
    return from.wrong ? fail_message(reading, "denormalizer_spec") : AH_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int field_read(struct reading *reading, const struct ah_protobuf_field *field)
{
    if (field->kind != AH_PROTOBUF_BYTES)
        return AH_OK;
    switch (field->number) {
    case 1:
        return piece_read(reading, field);
    case 2:
        return trainer_read(reading, field);
    case 3:
        return normalizer_read(reading, field);
    case 5:
        return denormalizer_read(reading, field);
    default:
        return AH_OK;
    }
}

int ah__sentencepiece_byte(const struct ah_token_row *row)
{
    static const char digits[] = "0123456789ABCDEF";
    if (row->type != AH_TOKEN_BYTE || row->length != 6 || memcmp(row->text, "<0x", 3) != 0 || row->text[5] != '>')
        return -1;
    const char *high = strchr(digits, row->text[3]), *low = strchr(digits, row->text[4]);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

static int bytes_check(const struct reading *reading)
{
    const struct ah_sentencepiece_model *model = reading->model;
    bool found[256] = {false};
    size_t count = 0;
    for (size_t i = 0; i < model->count; i++) {
        int byte = ah__sentencepiece_byte(&model->rows[i]);
        if (model->rows[i].type == AH_TOKEN_BYTE && (byte < 0 || !model->byte_fallback))
            return ah__fail(AH_EINPUT, "%s: piece %zu: found '%.*s' as a byte, expected %s", reading->path, i,
                            model->rows[i].length < 40 ? (int)model->rows[i].length : 40, model->rows[i].text,
                            byte < 0 ? "one like <0x0A>" : "none without 'trainer_spec.byte_fallback'");
        count += byte >= 0 && !found[byte];
        found[byte < 0 ? 0 : byte] |= byte >= 0;
    }
    if (model->byte_fallback && count != 256)
        return ah__fail(AH_EINPUT,
                        "%s: key 'trainer_spec.byte_fallback': found true and pieces of %zu bytes, "
                        "expected all 256",
                        reading->path, count);
    return AH_OK;
}

static int model_check(const struct reading *reading)
{
    struct ah_sentencepiece_model *model = reading->model;
    model->unknown = -1;
    for (size_t i = 0; i < model->count; i++) {
        if (model->rows[i].type != AH_TOKEN_UNKNOWN)
            continue;
        if (model->unknown >= 0)
            return ah__fail(AH_EINPUT, "%s: piece %zu: found a second unknown piece, expected one", reading->path, i);
        model->unknown = (int32_t)i;
    }
    if (model->count == 0)
        return ah__fail(AH_EINPUT, "%s: found no model of SentencePiece: there are no pieces in it", reading->path);
    if (model->unknown < 0)
        return ah__fail(AH_EINPUT, "%s: found %zu pieces, none of them the unknown one, expected one", reading->path,
                        model->count);
    return bytes_check(reading);
}

int ah__sentencepiece_model_read(struct ah_sentencepiece_model *model, const char *file, size_t length,
                                 const char *path)
{
    struct ah_protobuf from = {file, file + length, false};
    struct ah_protobuf_field field;
    struct reading reading = {model, path};
    int status = AH_OK;
    *model = (struct ah_sentencepiece_model){
        .unigram = true,
        .adds_space = true,
        .removes_spaces = true,
        .escapes_spaces = true,
        .unknown_text = {" \xe2\x81\x87 ", 5},
        .bos = {"<s>", 3},
        .eos = {"</s>", 4},
    };
    while (status == AH_OK && ah__protobuf_next(&field, &from))
        status = field_read(&reading, &field);
    if (status == AH_OK && from.wrong)
        status = ah__fail(AH_EINPUT, "%s: found no model of SentencePiece (a message of protocol buffers)%s", path,
                          model->count ? ": it ends in the middle" : "");
    if (status == AH_OK)
        status = model_check(&reading);
    if (status != AH_OK)
        ah__sentencepiece_model_free(model);
    return status;
}

void ah__sentencepiece_model_free(struct ah_sentencepiece_model *model)
{
    ah__free(model->rows);
    model->rows = NULL;
}

int32_t ah__sentencepiece_control(const struct ah_sentencepiece_model *model, const struct ah_sentencepiece_text *text)
{
    for (size_t i = 0; i < model->count; i++)
        if (model->rows[i].type == AH_TOKEN_CONTROL && model->rows[i].length == text->length &&
            memcmp(model->rows[i].text, text->text, text->length) == 0)
            return (int32_t)i;
    return -1;
}
