/* Defines the program's functions in plugins. Never compiled into the library. */
#include "dev/plugin/forward.h"

#include <stdarg.h>

#include "base/alloc.h"
#include "base/format.h"
#include "dev/host/task.h"

static const struct ah_plugin_host *host;

/* Does not write if the value is the same, since an open device of this plugin may read `host` meanwhile. The program
 * calls this from one thread at a time. */
void ah__plugin_forward(const struct ah_plugin_host *given)
{
    if (host != given)
        host = given;
}

/* ---- base/ ------------------------------------------------------------------------------------------------------- */

enum { MESSAGE_BYTES = 1024 };

int ah__fail(int status, const char *format, ...)
{
    char text[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    ah__vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return host->fail(status, text);
}

int ah__fail_prefix(int status, const char *format, ...)
{
    char text[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    ah__vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return host->fail_prefix(status, text);
}

const char *ah_error(void)
{
    return host->error();
}
const char *ah_lane_name(enum ah_lane lane)
{
    return host->lane_name(lane);
}
int ah__new(void *out, size_t count, size_t size)
{
    return host->memory_new(out, count, size);
}
void ah__free(void *memory)
{
    host->memory_free(memory);
}

/* ---- host/ and comm/ --------------------------------------------------------------------------------------------- */

int ah__pages_new(struct ah_pages *out, int64_t bytes, const char *what)
{
    return host->pages_new(out, bytes, what);
}
void ah__pages_free(struct ah_pages *pages)
{
    host->pages_free(pages);
}
int64_t ah__pages_available(void)
{
    return host->pages_available();
}

int ah__pool_new(struct ah_pool **out, int threads, int core)
{
    return host->pool_new(out, threads, core);
}
void ah__pool_free(struct ah_pool *pool)
{
    host->pool_free(pool);
}
void ah__pool_enter(struct ah_pool *pool)
{
    host->pool_enter(pool);
}
int ah__pool_threads(const struct ah_pool *pool)
{
    return host->pool_threads(pool);
}
float *ah__pool_scratch(struct ah_pool *pool, int worker)
{
    return host->pool_scratch(pool, worker);
}
double *ah__pool_partials(struct ah_pool *pool)
{
    return host->pool_partials(pool);
}

void ah__pool_run(struct ah_pool *pool, void (*piece)(void *context, int index, int worker), int count, void *context)
{
    host->pool_run(pool, piece, count, context);
}

int ah__lanes_new(struct ah_lanes **out, const struct ah_lanes_config *config)
{
    return host->lanes_new(out, config);
}
void ah__lanes_free(struct ah_lanes *lanes)
{
    host->lanes_free(lanes);
}
int ah__lanes_wait_any(struct ah_lanes *lanes, struct ah_done *done)
{
    return host->lanes_wait_any(lanes, done);
}
int ah__lanes_settle(struct ah_lanes *lanes)
{
    return host->lanes_settle(lanes);
}
void ah__lanes_finish(struct ah_lanes *lanes, const struct ah_done *done)
{
    host->lanes_finish(lanes, done);
}
bool ah__lanes_wait(struct ah_lanes *lanes, struct ah_event event)
{
    return host->lanes_wait(lanes, event);
}
int ah__lanes_failed(struct ah_lanes *lanes)
{
    return host->lanes_failed(lanes);
}

int ah__lanes_submit(struct ah_lanes *lanes, const struct ah_work *work, struct ah_event *done)
{
    return host->lanes_submit(lanes, work, done);
}

int ah__host_adam(struct ah_pool *pool, const struct ah_task *task)
{
    return host->host_adam(pool, task);
}
int ah__host_sqnorm(struct ah_pool *pool, const struct ah_task *task)
{
    return host->host_sqnorm(pool, task);
}
int ah__host_cast(struct ah_pool *pool, const struct ah_task *task)
{
    return host->host_cast(pool, task);
}

int ah__host_expand(struct ah_pool *pool, const struct ah_task *task)
{
    return host->host_expand(pool, task);
}

int ah__host_disk(const struct ah_task *task)
{
    return host->host_disk(task);
}

struct ah_comm *ah__comm(void)
{
    return host->comm();
}
