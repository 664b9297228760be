/* Adapters as GGUF files: what llama.cpp's converter makes of PEFT's (tests/golden/gguf_files.py), scales that it does
 * not know, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autohete.h"
#include "base/alloc.h"
#include "base/file.h"
#include "golden/gguf_same.h"

enum { PATH = 512 };

static char *golden(char path[PATH], const char *form, const char *arch)
{
    snprintf(path, PATH, "%s/golden/gguf/", ah_test_source());
    size_t used = strlen(path);
    snprintf(path + used, PATH - used, form, arch);
    return path;
}

static char *place(char path[PATH], const char *name)
{
    snprintf(path, PATH, "%s/%s", ah_test_folder(), name);
    return path;
}

/* The golden adapter with another configuration. */
static void adapter_with(char folder[PATH], const char *arch, const char *config)
{
    char from[PATH], to[PATH + 32], *bytes;
    size_t count;
    assert_ok(ah__folder_make(place(folder, "adapter")));
    assert_ok(ah__file_read(&bytes, &count, golden(from, "adapter-%s/adapter_model.safetensors", arch), 1 << 20));
    snprintf(to, sizeof to, "%s/adapter_model.safetensors", folder);
    assert_ok(ah__file_write(to, bytes, count));
    ah__free(bytes);
    snprintf(to, sizeof to, "%s/adapter_config.json", folder);
    assert_ok(ah__file_write(to, config, strlen(config)));
}

static void expect_text(const struct ah_gguf *file, const char *key, const char *expected)
{
    const char *text = "";
    assert_ok(ah__gguf_text(&text, file, key));
    assert_string_equal(text, expected);
}

static void expect_keys(const char *path, const char *arch, double alpha)
{
    struct ah_gguf *file;
    double found = 0;
    assert_ok(ah__gguf_open(&file, path));
    expect_text(file, "general.architecture", arch);
    expect_text(file, "general.type", "adapter");
    expect_text(file, "adapter.type", "lora");
    assert_ok(ah__gguf_double(&found, file, "adapter.lora.alpha", 0, 1e6));
    assert_true(found >= alpha && found <= alpha);
    ah__gguf_close(file);
}

/* Queries and keys in pairs, fused products by part, GPT-2's factors not turned; ranks and alphas of patterns. */
static void factors_are_the_converters(void **state)
{
    static const char *const rows[][2] = {
        {"llama", "llama"}, {"gpt2", "gpt2"}, {"gptneox", "gptneox"}, {"gpt2", "patterns"}};
    char model[PATH], adapter[PATH], expected[PATH], out[PATH], *note;
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        golden(model, "%s.gguf", rows[i][0]);
        golden(adapter, "adapter-%s", rows[i][1]);
        assert_ok(ah_export_adapter(&note, place(out, "adapter.gguf"), model, adapter, NULL));
        expect_same_tensors(golden(expected, "adapter-%s.gguf", rows[i][1]), out);
        expect_keys(out, rows[i][0], 6);
        assert_non_null(strstr(note, "--lora"));
        assert_non_null(strstr(note, "autohete merge"));
        free(note);
    }
}

#define CONFIG "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 6, \"target_modules\": [\"c_attn\", \"c_fc\"]"

/* llama.cpp divides by the rank: what is divided by its root has a larger alpha. */
static void a_stabilized_scale_is_in_alpha(void **state)
{
    char model[PATH], folder[PATH], expected[PATH], out[PATH];
    adapter_with(folder, "gpt2", CONFIG ", \"use_rslora\": true}");
    golden(model, "%s.gguf", "gpt2");
    assert_ok(ah_export_adapter(NULL, place(out, "adapter.gguf"), model, folder, "F32"));
    expect_same_tensors(golden(expected, "adapter-%s.gguf", "gpt2"), out);
    expect_keys(out, "gpt2", 12);
}

/* An adapter that names its model is a model to export. */
static void a_folder_says_what_it_is(void **state)
{
    char model[PATH], config[2 * PATH], folder[PATH], out[PATH], *note;
    snprintf(config, sizeof config, CONFIG ", \"base_model_name_or_path\": \"%s\"}", golden(model, "%s.gguf", "gpt2"));
    adapter_with(folder, "gpt2", config);
    assert_ok(ah_export_gguf_noted(&note, place(out, "adapter.gguf"), folder, "f16"));
    expect_keys(out, "gpt2", 6);
    assert_non_null(strstr(note, "an adapter of 2 weights"));
    free(note);
}

static void others_are_refused(void **state)
{
    char model[PATH], adapter[PATH], out[PATH];
    place(out, "adapter.gguf");
    golden(model, "%s.gguf", "gpt2");
    assert_fails(ah_export_adapter(NULL, out, model, model, NULL), AH_EINPUT,
                 "gpt2.gguf: found a GGUF file, expected an adapter's folder");
    assert_fails(ah_export_adapter(NULL, out, model, NULL, NULL), AH_EINPUT, "gpt2.gguf: found no adapter");
    golden(adapter, "adapter-%s", "gpt2");
    assert_fails(ah_export_adapter(NULL, out, model, adapter, "Q4_K_M"), AH_EINPUT, "llama-quantize FILE.gguf");
    golden(adapter, "adapter-%s", "llama");
    assert_int_equal(ah_export_adapter(NULL, out, model, adapter, NULL), AH_EINPUT);
    golden(adapter, "adapter-%s", "whole");
    assert_fails(ah_export_adapter(NULL, out, model, adapter, NULL), AH_EINPUT,
                 "found tensor 'transformer.ln_f.weight' beside adapters, which GGUF has no place for");
    assert_false(ah__path_exists(out));
}

AH_TEST_CASES("infer/export_adapter", factors_are_the_converters, a_stabilized_scale_is_in_alpha,
              a_folder_says_what_it_is, others_are_refused)
