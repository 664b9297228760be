/* A model whose config.json asks for dropout: refused in training, with the option that trains it without. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "train/tiny.h"

static const char with_dropout[] = "{\"model_type\":\"gpt2\",\"vocab_size\":256,\"n_positions\":16,\"n_embd\":16,"
                                   "\"n_layer\":2,\"n_head\":2,\"resid_pdrop\":0,\"attn_pdrop\":0.1}";
static const char without[] = "{\"model_type\":\"gpt2\",\"vocab_size\":256,\"n_positions\":16,\"n_embd\":16,"
                              "\"n_layer\":2,\"n_head\":2}";

/* Of another model than the tiny one, whose profile is at hand. */
static struct ah_train_options own(struct ah_train_options options)
{
    options.profile_path = NULL;
    return options;
}

static void dropout_is_refused_or_left_out(void **state)
{
    struct place place, plain;
    struct ah_train_result result;
    char words[PATH_SIZE + 64];
    place_init(&place);
    struct ah_train_options options = own(options_of(&place));
    write_text(place.model, with_dropout);
    snprintf(words, sizeof words, "%s: key 'attn_pdrop': found 0.1, expected 0: training drops nothing; --no-dropout",
             place.model);
    assert_fails(ah_train(&result, &options), AH_EINPUT, words);
    assert_int_equal(access(place.out, F_OK), -1);
    options.no_dropout = true;
    assert_ok(ah_train(&result, &options));
    place_init(&plain);
    options = own(options_of(&plain));
    write_text(plain.model, without);
    assert_ok(ah_train(&result, &options));
    expect_same_file(place.out, plain.out, "checkpoint/model.safetensors");
    expect_same_file(place.out, plain.out, "checkpoint/config.json");
}

/* What the training was told is kept for the next one like it; one that goes on has a configuration of its own. */
static void it_is_told_once(void **state)
{
    struct place place;
    struct ah_train_result result;
    char like[PATH_SIZE];
    place_init(&place);
    struct ah_train_options options = own(options_of(&place));
    write_text(place.model, with_dropout);
    options.no_dropout = true;
    assert_ok(ah_train(&result, &options));
    options = own(resume_of(&place));
    options.steps = STEPS + 1;
    assert_ok(ah_train(&result, &options));
    ah_train_options_init(&options, sizeof options);
    snprintf(like, sizeof like, "%s-like", place.out);
    options.like_dir = place.out;
    options.out_dir = like;
    options.steps = 1;
    assert_ok(ah_train(&result, &options));
}

AH_TEST_CASES("train/dropout", dropout_is_refused_or_left_out, it_is_told_once)
