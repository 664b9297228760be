/* Folders from elsewhere: links in them are replaced, not followed; what they lead to is not passed on. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "train/tiny.h"

/* DIR/NAME becomes a link to a file outside, which says "precious". */
static void link_out(const char *dir, const char *name)
{
    char path[PATH_SIZE], target[PATH_SIZE + 16];
    snprintf(target, sizeof target, "%s-precious-%s", dir, name);
    write_text(target, "precious");
    unlink(at(path, dir, name));
    assert_int_equal(symlink(target, path), 0);
}

static void expect_own(const char *dir, const char *name)
{
    char path[PATH_SIZE], target[PATH_SIZE + 16];
    struct stat info;
    snprintf(target, sizeof target, "%s-precious-%s", dir, name);
    assert_int_equal(lstat(at(path, dir, name), &info), 0);
    if (!S_ISREG(info.st_mode))
        fail_msg("%s is no file of its folder", path);
    char *text;
    size_t length;
    assert_ok(ah__file_read(&text, &length, target, 100));
    if (strcmp(text, "precious") != 0)
        fail_msg("%s was written through", path);
    ah__free(text);
}

static void a_resumed_folder_writes_its_own(void **state)
{
    static const char *const names[] = {"metrics.jsonl", "plan.json", "profile.json",
                                        "timeline.svg",  "loss.svg",  "timeline.json"};
    struct place place;
    struct ah_train_result result;
    place_init(&place);
    train_part(&place, STEPS / 2);
    for (size_t i = 0; i < AH_LENGTH(names); i++)
        link_out(place.out, names[i]);
    struct ah_train_options options = resume_of(&place);
    assert_ok(ah_train(&result, &options));
    for (size_t i = 0; i < AH_LENGTH(names); i++)
        expect_own(place.out, names[i]);
}

static void a_report_is_the_folders_own(void **state)
{
    struct place place;
    struct ah_train_result result;
    char named[PATH_SIZE + 8], target[PATH_SIZE + 16];
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    assert_ok(ah_train(&result, &options));
    link_out(place.out, "report.html");
    assert_ok(ah_report_save(place.out, NULL));
    expect_own(place.out, "report.html");
    /* what the user names is followed */
    snprintf(named, sizeof named, "%s-page", place.out);
    snprintf(target, sizeof target, "%s-target", place.out);
    write_text(target, "old");
    assert_int_equal(symlink(target, named), 0);
    assert_ok(ah_report_save(place.out, named));
    char *text;
    size_t length;
    assert_ok(ah__file_read(&text, &length, target, 1 << 24));
    assert_non_null(strstr(text, "<html"));
    ah__free(text);
}

struct watch {
    char notes[4096];
};

static void on_note(const char *line, void *context)
{
    struct watch *watch = context;
    size_t length = strlen(watch->notes);
    snprintf(watch->notes + length, sizeof watch->notes - length, "%s\n", line);
}

/* Trains the model of a folder; what was said of it. */
static struct watch train_from(struct place *place, const char *folder)
{
    struct watch watch = {{0}};
    struct ah_train_result result;
    struct ah_train_options options = options_of(place);
    char config[PATH_SIZE];
    write_model(at(config, folder, "config.json"), 16);
    options.model_path = folder;
    options.on_note = on_note;
    options.context = &watch;
    assert_ok(ah_train(&result, &options));
    return watch;
}

/* The training's folder and its checkpoint have the file, or neither. */
static void expect_copied(const struct place *place, const char *name, const char *text)
{
    char path[PATH_SIZE], checkpoint[PATH_SIZE];
    snprintf(checkpoint, sizeof checkpoint, "%s/step-%08d", place->out, STEPS);
    const char *const folders[] = {place->out, checkpoint};
    int found = 0;
    for (size_t i = 0; i < AH_LENGTH(folders); i++) {
        if (access(at(path, folders[i], name), F_OK) != 0)
            continue;
        found++;
        size_t length;
        char *there = read_text(folders[i], name, &length);
        if (!text || strcmp(there, text) != 0)
            fail_msg("%s holds \"%s\"", path, there);
        ah__free(there);
    }
    if (text && !found)
        fail_msg("%s was not copied", name);
}

static void folder_in(char path[PATH_SIZE], const char *base, const char *name)
{
    assert_ok(ah__folder_make(at(path, base, name)));
}

/* NAME in the folder becomes a link to `target`, which may be relative. */
static void link_to(const char *folder, const char *name, const char *target)
{
    char path[PATH_SIZE];
    assert_int_equal(symlink(target, at(path, folder, name)), 0);
}

static void links_out_of_a_model_are_not_passed_on(void **state)
{
    struct place place;
    char base[PATH_SIZE], folder[PATH_SIZE], inside[PATH_SIZE], secret[PATH_SIZE], beside[PATH_SIZE];
    place_init(&place);
    snprintf(base, sizeof base, "%s", ah_test_folder());
    folder_in(folder, base, "model");
    folder_in(inside, folder, "files");
    folder_in(beside, base, "model-beside"); /* a name that begins alike */
    write_text(at(secret, base, "secret"), "{\"secret\": 1}");
    write_text(at(secret, beside, "secret"), "{\"secret\": 2}");
    write_text(at(secret, inside, "own"), "{\"own\": 1}");
    link_to(folder, "special_tokens_map.json", "files/own");
    link_to(folder, "chat_template.jinja", "../secret");
    link_to(folder, "chat_template.json", "files/../../secret");
    link_to(folder, "tokenizer_config.json", "../model-beside/secret");
    struct watch watch = train_from(&place, folder);
    expect_copied(&place, "special_tokens_map.json", "{\"own\": 1}");
    expect_copied(&place, "chat_template.jinja", NULL);
    expect_copied(&place, "chat_template.json", NULL);
    expect_copied(&place, "tokenizer_config.json", NULL);
    assert_non_null(strstr(watch.notes, "is a link that leads out of its folder: checkpoints get no copy"));
}

/* A cache as Hugging Face's tools make it: snapshots of links into one folder of blobs. */
static void links_into_a_cache_are_followed(void **state)
{
    struct place place;
    char base[PATH_SIZE], cache[PATH_SIZE], blobs[PATH_SIZE], folder[PATH_SIZE], path[PATH_SIZE];
    place_init(&place);
    snprintf(base, sizeof base, "%s", ah_test_folder());
    folder_in(cache, base, "models--a--b");
    folder_in(blobs, cache, "blobs");
    folder_in(path, cache, "snapshots");
    folder_in(folder, path, "0123abcd");
    write_text(at(path, blobs, "f00d"), "{\"blob\": 1}");
    write_text(at(path, base, "secret"), "{\"secret\": 1}");
    write_text(at(path, cache, "refs"), "{\"secret\": 2}");
    link_to(folder, "special_tokens_map.json", "../../blobs/f00d");
    link_to(folder, "chat_template.jinja", "../../../secret");
    link_to(folder, "chat_template.json", "../../refs"); /* in the cache, but no blob */
    struct watch watch = train_from(&place, folder);
    expect_copied(&place, "special_tokens_map.json", "{\"blob\": 1}");
    expect_copied(&place, "chat_template.jinja", NULL);
    expect_copied(&place, "chat_template.json", NULL);
    assert_non_null(strstr(watch.notes, "is a link that leads out of its folder: checkpoints get no copy"));
}

AH_TEST_CASES("train/links", a_resumed_folder_writes_its_own, a_report_is_the_folders_own,
              links_out_of_a_model_are_not_passed_on, links_into_a_cache_are_followed)
