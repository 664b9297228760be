/* ah_report_save writes a training's folder as one HTML page. It reads what training wrote and decides nothing; if a
 * file is missing, its section is left out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "plan/plan_internal.h"
#include "report/curve.h"
#include "source/adapter_config.h"
#include "source/folder.h"
#include "timeline/svg_panel.h"

struct report {
    const char *dir;
    char *checkpoint; /* the newest; null: no checkpoint */
    struct ah_curves curves;
    struct ah_timeline *predicted, *measured;
    struct ah_plan plan;
    bool planned;
    int64_t vocab_size; /* 0: unknown */
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int timeline_read(struct report *report)
{
    char *path;
    if (!ah__path_has(report->dir, "timeline.json"))
        return AH_OK;
    AH_TRY(ah__sprintf(&path, "%s/timeline.json", report->dir));
    int status = ah__timeline_load(&report->predicted, &report->measured, path);
    ah__free(path);
    return status;
}

static int plan_read(struct report *report)
{
    struct ah_json json;
    AH_TRY(ah__json_load_any(&json, report->dir, "plan.json"));
    int status = json.node ? ah__plan_from_tree(&report->plan, &json) : AH_OK;
    report->planned = json.node && status == AH_OK;
    ah__json_free(&json);
    return status;
}

static int config_read(struct report *report)
{
    struct ah_json json;
    AH_TRY(ah__json_load_any(&json, report->checkpoint, AH_ADAPTER_MODEL));
    if (!json.node)
        AH_TRY(ah__json_load_any(&json, report->checkpoint, "config.json"));
    int status = json.node && ah__json_has(&json, "vocab_size")
                     ? ah__json_int(&report->vocab_size, &json, "vocab_size", 1, INT32_MAX)
                     : AH_OK;
    ah__json_free(&json);
    return status;
}

static int report_read(struct report *report)
{
    AH_TRY(ah__curves_load(&report->curves, report->dir));
    if (ah__folder_find(&report->checkpoint, report->dir) != AH_OK)
        report->checkpoint = NULL; /* no checkpoint yet */
    AH_TRY(timeline_read(report));
    AH_TRY(plan_read(report));
    AH_TRY(config_read(report));
    if (!report->planned && !report->checkpoint && !report->predicted && report->curves.loss.count == 0)
        return ah__fail(AH_EINPUT, "%s: found no training there, expected a folder written by 'autohete train --out'",
                        report->dir);
    return AH_OK;
}

static void report_fini(struct report *report)
{
    ah__curves_fini(&report->curves);
    ah_timeline_free(report->predicted);
    ah_timeline_free(report->measured);
    ah__free(report->checkpoint);
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static const char style[] =
    ":root { color-scheme: light; }\n"
    "body { margin: 0; background: #f1f5f9; color: #1e293b; font: 15px/1.5 Inter, 'Helvetica Neue', Helvetica, Arial, "
    "'DejaVu Sans', sans-serif; }\n"
    "main { max-width: 928px; margin: 0 auto; padding: 32px 16px 64px; }\n"
    "h1 { font-size: 26px; line-height: 1.2; margin: 0 0 6px; color: #0f172a; overflow-wrap: anywhere; }\n"
    "h2 { font-size: 18px; margin: 36px 0 10px; color: #0f172a; }\n"
    "p { margin: 6px 0 12px; color: #475569; }\n"
    ".card { background: #fff; border: 1px solid #e2e8f0; border-radius: 10px; padding: 12px 23px; "
    "overflow-x: auto; }\n"
    ".card svg { display: block; margin: 0 auto 4px; max-width: 100%; height: auto; }\n"
    ".chunks { display: grid; grid-template-columns: repeat(auto-fit, minmax(160px, 1fr)); gap: 12px; "
    "margin-top: 20px; }\n"
    ".chunk { background: #fff; border: 1px solid #e2e8f0; border-radius: 10px; padding: 12px 16px; }\n"
    ".chunk b { display: block; font-size: 22px; font-weight: 600; color: #0f172a; }\n"
    ".chunk span { color: #64748b; font-size: 13px; }\n"
    "pre { font: 13px/1.5 ui-monospace, 'DejaVu Sans Mono', monospace; margin: 4px 0; }\n"
    "table { border-collapse: collapse; width: 100%; font-size: 14px; }\n"
    "td { padding: 4px 12px 4px 0; border-bottom: 1px solid #f1f5f9; vertical-align: top; overflow-wrap: anywhere; }\n"
    "td:first-child { color: #64748b; width: 34%; }\n"
    "dt { font-weight: 600; } dd { margin: 0 0 6px; color: #475569; }\n";

static void section(struct ah_buf *buf, const char *title)
{
    ah__buf_printf(buf, "<h2>%s</h2>\n", title);
}

static void chunk(struct ah_buf *buf, const char *figure, const char *words)
{
    ah__buf_printf(buf, "<div class=\"chunk\"><b>");
    ah__buf_xml(buf, figure);
    ah__buf_printf(buf, "</b><span>");
    ah__buf_xml(buf, words);
    ah__buf_printf(buf, "</span></div>\n");
}

static const struct ah_timeline *best_timeline(const struct report *report)
{
    return report->measured ? report->measured : report->predicted;
}

static void loss_chunks(struct ah_buf *buf, const struct report *report)
{
    char figure[64], words[64];
    const struct ah_series *loss = &report->curves.loss, *val = &report->curves.val_loss;
    if (loss->count == 0)
        return;
    ah__snprintf(figure, sizeof figure, "%.4f", ah__series_smoothed(loss));
    ah__snprintf(words, sizeof words, "training loss after step %.15g", loss->step[loss->count - 1]);
    chunk(buf, figure, words);
    if (val->count == 0)
        return;
    ah__snprintf(figure, sizeof figure, "%.4f", val->value[val->count - 1]);
    ah__snprintf(words, sizeof words, "validation loss after step %.15g", val->step[val->count - 1]);
    chunk(buf, figure, words);
}

static void machine_chunks(struct ah_buf *buf, const struct report *report)
{
    char figure[64], words[96], text[24], peak[32], budget[32];
    const struct ah_timeline *timeline = best_timeline(report);
    if (timeline && timeline->step_ns > 0) {
        const struct ah_svg_unit unit = ah__svg_time_unit(timeline->step_ns);
        ah__snprintf(figure, sizeof figure, "%s %s", ah__svg_figure(text, (double)timeline->step_ns / unit.size),
                     unit.name);
        ah__snprintf(words, sizeof words, "a step, %s", timeline->predicted ? "predicted" : "measured");
        if (report->measured && report->predicted && report->predicted->step_ns > 0)
            ah__snprintf(words, sizeof words, "a step; %s %s predicted",
                         ah__svg_figure(text, (double)report->predicted->step_ns / unit.size), unit.name);
        chunk(buf, figure, words);
    }
    if (!report->planned)
        return;
    ah_size_format(peak, sizeof peak, report->plan.device_peak_bytes);
    ah__snprintf(words, sizeof words, "of device memory, no limit given");
    if (timeline && timeline->device_budget_bytes)
        ah__snprintf(words, sizeof words, "of device memory; budget %s",
                     ah_size_format(budget, sizeof budget, timeline->device_budget_bytes));
    chunk(buf, peak, words);
    chunk(buf, ah_size_format(peak, sizeof peak, report->plan.host_peak_bytes), "of host memory");
}

static void head(struct ah_buf *buf, const struct report *report)
{
    const struct ah_timeline *timeline = best_timeline(report);
    ah__buf_printf(buf, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    ah__buf_xml(buf, report->dir);
    ah__buf_printf(buf, ": a training by AutoHete</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n<h1>", style);
    ah__buf_xml(buf, report->dir);
    ah__buf_printf(buf, "</h1>\n<p>");
    ah__buf_xml(buf, timeline && timeline->caption[0] ? timeline->caption : "A training by AutoHete.");
    ah__buf_printf(buf, "</p>\n<div class=\"chunks\">\n");
    loss_chunks(buf, report);
    machine_chunks(buf, report);
    ah__buf_printf(buf, "</div>\n");
}

static void loss(struct ah_buf *buf, const struct report *report)
{
    section(buf, "Loss");
    ah__buf_printf(buf, "<div class=\"card\">\n");
    ah__curves_loss(buf, &report->curves, NULL, report->vocab_size);
    ah__buf_printf(buf, "</div>\n");
}

static int timeline(struct ah_buf *buf, const struct report *report)
{
    const struct ah_timeline *shown = best_timeline(report);
    if (!shown)
        return AH_OK;
    section(buf, "Timeline and memory");
    ah__buf_printf(buf, "<p>Two consecutive steps. Each row is something the machine does at the same time as the "
                        "others; below, what of the device's memory is in use.</p>\n<div class=\"card\">\n");
    AH_TRY(ah__timeline_svg(buf, report->predicted, report->measured, shown->device_budget_bytes));
    ah__buf_printf(buf, "</div>\n");
    return AH_OK;
}

static int plan(struct ah_buf *buf, const struct report *report)
{
    const struct ah_timeline *shown = best_timeline(report);
    struct ah_budget budget = {.device_bytes = shown ? shown->device_budget_bytes : 0};
    char *text = NULL;
    size_t length;
    if (!report->planned)
        return AH_OK;
    FILE *memory = open_memstream(&text, &length);
    if (!memory)
        return ah__fail(AH_ENOMEM, "no memory for the plan's table");
    int status = ah_plan_print(&report->plan, &budget, memory);
    if (fclose(memory) != 0 && status == AH_OK)
        status = ah__fail(AH_ENOMEM, "no memory for the plan's table");
    if (status == AH_OK) {
        section(buf, "Plan");
        ah__buf_printf(buf, "<div class=\"card\"><pre>");
        ah__buf_xml(buf, text);
        ah__buf_printf(buf, "</pre></div>\n");
    }
    free(text);
    return status;
}

static void small_chart(struct ah_buf *buf, const char *title, const char *name, const struct ah_series *series,
                        bool plain)
{
    struct ah_chart chart = {
        .title = title, .name = name, .main = series, .reference = NAN, .plain = plain, .height = 220};
    if (series->count > 1)
        ah__chart(buf, &chart);
}

static void other_curves(struct ah_buf *buf, const struct report *report)
{
    if (report->curves.loss.count < 2)
        return;
    section(buf, "Gradients, learning rate, speed");
    ah__buf_printf(buf, "<div class=\"card\">\n");
    small_chart(buf, "Norm of the gradients before clipping", "norm", &report->curves.grad_norm, false);
    small_chart(buf, "Learning rate", "rate", &report->curves.lr, true);
    small_chart(buf, "Tokens per second", "tokens per second", &report->curves.tokens_per_s, false);
    ah__buf_printf(buf, "</div>\n");
}

/* ---- tables of JSON files ---------------------------------------------------------------------------------------- */

static void value(struct ah_buf *buf, const cJSON *node)
{
    if (cJSON_IsString(node))
        ah__buf_xml(buf, node->valuestring);
    else if (cJSON_IsBool(node))
        ah__buf_printf(buf, "%s", cJSON_IsTrue(node) ? "yes" : "no");
    else if (cJSON_IsNumber(node))
        ah__buf_printf(buf, "%.10g", node->valuedouble);
    else
        ah__buf_printf(buf, "-");
}

/* Writes the members of an object as rows. Members of an object in it follow its name; deeper objects, and arrays, are
 * left out. */
static void rows(struct ah_buf *buf, const cJSON *object, const char *outer)
{
    for (const cJSON *node = object->child; node; node = node->next) {
        if (cJSON_IsObject(node) && !outer) {
            rows(buf, node, node->string);
            continue;
        }
        if (cJSON_IsObject(node) || cJSON_IsArray(node))
            continue;
        ah__buf_printf(buf, "<tr><td>");
        ah__buf_xml(buf, outer ? outer : "");
        ah__buf_printf(buf, outer ? " " : "");
        ah__buf_xml(buf, node->string);
        ah__buf_printf(buf, "</td><td>");
        value(buf, node);
        ah__buf_printf(buf, "</td></tr>\n");
    }
}

static int table(struct ah_buf *buf, const char *title, const char *dir, const char *name)
{
    struct ah_json json;
    AH_TRY(ah__json_load_any(&json, dir, name));
    if (json.node) {
        section(buf, title);
        ah__buf_printf(buf, "<div class=\"card\"><table>\n");
        rows(buf, json.node, NULL);
        ah__buf_printf(buf, "</table></div>\n");
    }
    ah__json_free(&json);
    return AH_OK;
}

static void words(struct ah_buf *buf)
{
    static const struct {
        const char *term, *meaning;
    } terms[] = {
        {"compute, h2d, d2h, host", "what a machine does at the same time: arithmetic on the device, copies from host "
                                    "to device, copies back, the optimizer on the host"},
        {"buffer", "room on the device for one block's parameters or its gradient; blocks on the host share them"},
        {"recompute", "a block keeps only its input in the forward pass and makes its activations again for backward"},
        {"fetched twice", "a block gives its parameters back after forward and fetches them again for backward"},
        {"bound", "no schedule of this plan can be faster: the busiest lane's work in a step, or the longest chain of "
                  "dependencies from a step to the next"},
    };
    section(buf, "Words");
    ah__buf_printf(buf, "<div class=\"card\"><dl>\n");
    for (size_t i = 0; i < AH_LENGTH(terms); i++)
        ah__buf_printf(buf, "<dt>%s</dt><dd>%s.</dd>\n", terms[i].term, terms[i].meaning);
    ah__buf_printf(buf, "</dl></div>\n");
}

static int page(struct ah_buf *buf, const struct report *report)
{
    head(buf, report);
    loss(buf, report);
    AH_TRY(timeline(buf, report));
    AH_TRY(plan(buf, report));
    other_curves(buf, report);
    AH_TRY(table(buf, "How it was started", report->dir, "run.json"));
    AH_TRY(table(buf, "The newest checkpoint", report->checkpoint, "state.json"));
    words(buf);
    ah__buf_printf(buf, "<p>AutoHete %s</p>\n</main>\n</body>\n</html>\n", ah_version());
    return buf->status;
}

/* Writes the page into the training's folder, which may come from elsewhere: ah__file_own removes a symbolic link of
 * that name first. */
static int own_write(const char *dir, const struct ah_buf *buf)
{
    char *path;
    AH_TRY(ah__sprintf(&path, "%s/report.html", dir));
    int status = ah__file_own(path);
    if (status == AH_OK)
        status = ah__file_write(path, buf->text, buf->length);
    ah__free(path);
    return status;
}

int ah_report_save(const char *dir, const char *path)
{
    struct report report = {.dir = dir};
    struct ah_buf buf = {0};
    int status = path ? ah_output_check(path, &dir, 1) : AH_OK;
    if (status == AH_OK)
        status = report_read(&report);
    if (status == AH_OK)
        status = page(&buf, &report);
    if (status == AH_OK)
        status = path ? ah__file_write(path, buf.text, buf.length) : own_write(dir, &buf);
    ah__buf_free(&buf);
    report_fini(&report);
    return status;
}
