/* ah_data_prepare: writes documents as a token file. All tokens first go to a temporary file, in the order of the
 * inputs; from there each document is copied to its position in the shuffled order. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/output.h"
#include "data/corpus.h"
#include "data/token_file.h"
#include "data/tokens.h"
#include "partition/partition.h"
#include "source/inputs.h"
#include "source/model_tokenizer.h"

enum { TOKENS_16_BITS = 1 << 16, COPIED_TOKENS = 1 << 14 };

struct preparation {
    const struct ah_data_options *options;
    struct ah_model *model;
    const struct ah_tokenizer *tokenizer;
    struct ah_documents *documents;
    int32_t end; /* token that ends a document */
    char *spool_path;
    int spool;       /* descriptor of the temporary file: tokens as int32, in the order of the inputs; -1: not open */
    int64_t spooled; /* tokens in the temporary file */
    int64_t *starts; /* start of each document in the temporary file, and the end of the last: [count + 1] */
    size_t count, room;
    int64_t val_documents; /* documents for validation: the last in the shuffled order */
    struct ah_token_file file;
    struct ah_token_writer *writer;
};

void ah_data_options_init(struct ah_data_options *options)
{
    *options = (struct ah_data_options){.seed = 1, .val_share = 0.1};
}

static int stop_check(const struct preparation *prep)
{
    const volatile int *stop = prep->options->stop;
    return stop && *stop ? ah__fail(AH_ESTOP, "stopped before all documents were read: nothing is written") : AH_OK;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int options_check(const struct ah_data_options *options, enum ah_data_format *format)
{
    if (!options->model_path)
        return ah__fail(AH_EINPUT, "model: found none, expected a JSON file or a folder with config.json");
    if (!options->out || !options->out[0])
        return ah__fail(AH_EINPUT, "out: found none, expected a file to write");
    if (!options->input_count)
        return ah__fail(AH_EINPUT, "inputs: found none, expected files of text or folders");
    if (!(options->val_share >= 0 && options->val_share <= 0.5))
        return ah__fail(AH_EINPUT, "val_share: found %.10g, expected 0 to 0.5", options->val_share);
    AH_TRY(ah__data_format_parse(format, options->format));
    if (*format == AH_DATA_LLMC || *format == AH_DATA_NANOGPT)
        return ah__fail(AH_EINPUT, "data_format: found %s, expected auto, text or jsonl: there is nothing to prepare",
                        options->format);
    return AH_OK;
}

/* Makes the temporary file beside the token file, where the space for it is. It is unlinked at once, so it disappears
 * with this process, however that ends. */
static int spool_open(struct preparation *prep)
{
    char *target;
    AH_TRY(ah__output_target(&target, prep->options->out));
    int status = ah__sprintf(&prep->spool_path, "%s.spool-XXXXXX", target ? target : "/tmp/autohete");
    ah__free(target);
    AH_TRY(status);
    prep->spool = mkostemp(prep->spool_path, O_CLOEXEC);
    if (prep->spool < 0)
        return ah__fail(ah__open_status(errno), "%s: cannot write: %s", prep->options->out, strerror(errno));
    unlink(prep->spool_path);
    return AH_OK;
}

/* Fails if the token file is one of the files that are read. */
static int out_check(const struct ah_data_options *options)
{
    AH_TRY(ah__output_check(options->out, true));
    AH_TRY(ah__output_apart(options->out, options->model_path));
    for (size_t i = 0; i < options->input_count; i++)
        AH_TRY(ah__output_apart_of_all(options->out, options->inputs[i]));
    return AH_OK;
}

static int open_all(struct preparation *prep)
{
    enum ah_data_format format;
    AH_TRY(options_check(prep->options, &format));
    AH_TRY(out_check(prep->options));
    AH_TRY(ah_model_load(&prep->model, prep->options->model_path));
    AH_TRY(ah__text_tokenizer_open(&prep->tokenizer, prep->options->model_path, ah_model_get(prep->model)->vocab_size,
                                   ah__data_as_bytes(prep->options->format)));
    AH_TRY(ah__tokenizer_check(prep->tokenizer));
    AH_TRY(ah__tokenizer_end_set(prep->tokenizer, prep->options->eos));
    AH_TRY(ah__document_end_check(prep->tokenizer, ah_model_get(prep->model)->vocab_size));
    prep->end = ah__document_end(prep->tokenizer);
    AH_TRY(ah__documents_open(&prep->documents, prep->options->inputs, prep->options->input_count, format));
    return spool_open(prep);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int spool_add(struct preparation *prep, const int32_t *ids, int64_t count)
{
    AH_TRY(ah__file_put(prep->spool, ids, (size_t)count * sizeof *ids, prep->options->out));
    prep->spooled += count;
    return AH_OK;
}

static int text_add(struct preparation *prep, const struct ah_document *document)
{
    const char *where = ah__documents_where(prep->documents);
    int32_t *ids;
    int64_t count;
    int status = prep->tokenizer->encode(&ids, &count, prep->tokenizer, document->text, document->length);
    if (status != AH_OK)
        return ah__fail_prefix(status, "%s", where);
    status = ah__ids_check(ids, count, ah_model_get(prep->model)->vocab_size, where);
    if (status == AH_OK)
        status = spool_add(prep, ids, count);
    ah__free(ids);
    return status;
}

static int document_end(struct preparation *prep)
{
    AH_TRY(spool_add(prep, &prep->end, 1));
    AH_TRY(ah__grow(&prep->starts, &prep->room, prep->count + 2, sizeof *prep->starts));
    prep->starts[++prep->count] = prep->spooled;
    return AH_OK;
}

static int read_all(struct preparation *prep)
{
    struct ah_document document;
    bool more = true;
    AH_TRY(ah__grow(&prep->starts, &prep->room, 1, sizeof *prep->starts));
    for (;;) {
        AH_TRY(stop_check(prep));
        AH_TRY(ah__documents_next(&more, &document, prep->documents));
        if (!more)
            break;
        if (document.kind != AH_DOCUMENT_TEXT)
            return ah__fail(AH_EINPUT,
                            "%s: found an example (%s), expected a document of text: 'autohete train' reads these as "
                            "they are",
                            ah__documents_where(prep->documents), ah__data_format_words[document.form]);
        AH_TRY(text_add(prep, &document));
        if (document.whole)
            AH_TRY(document_end(prep));
    }
    return prep->count ? AH_OK : ah__fail(AH_EINPUT, "%s: found no document, expected text", prep->options->inputs[0]);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static size_t shuffled(const struct preparation *prep, size_t place)
{
    return (size_t)ah__permute(place, prep->count, prep->options->seed);
}

/* Sets the validation part: whole documents from the end of the shuffled order until they reach the share, never the
 * first document. A single document is split: its last tokens are for validation. */
static void split(struct preparation *prep)
{
    int64_t most = (int64_t)((double)prep->spooled * prep->options->val_share), tokens = 0;
    size_t taken = 0;
    while (taken + 1 < prep->count && tokens < most) {
        size_t document = shuffled(prep, prep->count - 1 - taken++);
        tokens += prep->starts[document + 1] - prep->starts[document];
    }
    prep->val_documents = (int64_t)taken;
    prep->file.val_tokens = prep->count == 1 ? most : tokens;
}

static int document_copy(struct preparation *prep, size_t document)
{
    int32_t ids[COPIED_TOKENS];
    for (int64_t at = prep->starts[document], end = prep->starts[document + 1]; at < end;) {
        int64_t piece = end - at < COPIED_TOKENS ? end - at : COPIED_TOKENS;
        AH_TRY(ah__file_read_at(prep->spool, ids, (size_t)piece * sizeof *ids, at * (int64_t)sizeof *ids,
                                prep->spool_path));
        AH_TRY(ah__token_writer_append(prep->writer, ids, piece));
        at += piece;
    }
    return AH_OK;
}

static int write_all(struct preparation *prep)
{
    int width = ah_model_get(prep->model)->vocab_size <= TOKENS_16_BITS ? 2 : 4;
    prep->file.documents = (int64_t)prep->count;
    prep->file.tokenizer = prep->tokenizer->signature;
    split(prep);
    AH_TRY(ah__token_writer_open(&prep->writer, prep->options->out, width));
    for (size_t i = 0; i < prep->count; i++) {
        AH_TRY(stop_check(prep));
        AH_TRY(document_copy(prep, shuffled(prep, i)));
    }
    return ah__token_writer_close(prep->writer, &prep->file);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static int params_count(int64_t *out, const struct ah_model *model)
{
    static const struct ah_step_options step = {.infers = true};
    struct ah_graph *graph;
    struct ah_partition *partition;
    AH_TRY(ah_model_record(&graph, model, &(struct ah_record_options){.batch = 1, .seq = 1, .compute = AH_F32}));
    int status = ah_partition_new(&partition, graph, &step);
    if (status == AH_OK) {
        *out = ah__partition_params(partition);
        ah_partition_free(partition);
    }
    ah_graph_free(graph);
    return status;
}

static int prepare(struct ah_data_result *result, struct preparation *prep)
{
    AH_TRY(open_all(prep));
    int64_t params = 0;
    AH_TRY(params_count(&params, prep->model));
    AH_TRY(read_all(prep));
    AH_TRY(write_all(prep));
    *result = (struct ah_data_result){
        .documents = prep->file.documents,
        .val_documents = prep->val_documents,
        .tokens = prep->file.tokens,
        .val_tokens = prep->file.val_tokens,
        .bytes_read = ah__documents_bytes(prep->documents),
        .bytes_written = AH_TOKEN_FILE_HEADER + prep->file.tokens * prep->file.width,
        .params = params,
        .vocab_size = ah_model_get(prep->model)->vocab_size,
        .token_bits = 8 * prep->file.width,
        .tokenizer = prep->tokenizer->text_is_ids ? ah__tokenizer_bytes.name : "the model's own",
    };
    return AH_OK;
}

int ah_data_prepare(struct ah_data_result *result, const struct ah_data_options *options)
{
    struct preparation prep = {.options = options, .spool = -1};
    int status = prepare(result, &prep);
    ah__token_writer_free(prep.writer);
    if (prep.spool >= 0)
        close(prep.spool);
    ah__free(prep.spool_path);
    ah__free(prep.starts);
    ah__documents_close(prep.documents);
    ah__tokenizer_close(prep.tokenizer);
    ah_model_free(prep.model);
    return status;
}
