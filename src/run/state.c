/* Loads, stores and initialises states. Nothing is in flight while any of these runs. */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "dev/host/codes.h"
#include "dev/host/normal.h"
#include "dev/host/states.h"
#include "dev/planes.h"
#include "run/internal.h"

enum { PIECE = 1 << 20 }; /* floats initialised at a time */

int ah__run_copy(struct ah_run *run, enum ah_lane lane, void *to, const void *from, int64_t bytes)
{
    struct ah_work work = {.lane = lane, .tasks = 1, .task = {{.type = AH_TASK_COPY}}};
    struct ah_done done;
    work.label = (struct ah_label){.what = lane == AH_LANE_H2D ? "load" : "store"};
    work.task[0].as.copy.to = to;
    work.task[0].as.copy.from = from;
    work.task[0].as.copy.bytes = bytes;
    return ah__dev_run(run->dev, &work, &done);
}

/* Describes how a state is moved to or from values, which are floats or in the state's own format. */
struct moved {
    enum ah_run_state which;
    enum ah_dtype dtype, as; /* dtype: of the state, or of its upper plane; as: of the values */
    bool planes;             /* the state has a second plane, the rest; then the values are floats */
    bool load;
};

/* Addresses of elements of a state; rest: null if the state has one plane. */
struct place {
    char *state, *rest;
};

static void convert_planes(const struct place *at, char *values, int64_t count, bool load)
{
    uint16_t *upper = (uint16_t *)(void *)at->state, *rest = (uint16_t *)(void *)at->rest;
    uint32_t *floats = (uint32_t *)(void *)values;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = ah__plane_bits(floats[i]);
        if (load) {
            upper[i] = ah__plane_upper(bits);
            rest[i] = (uint16_t)bits;
        } else {
            floats[i] = ah__planes_joined(upper[i], rest[i]);
        }
    }
}

static void convert(const struct place *at, char *values, int64_t count, const struct moved *how)
{
    const struct ah_state_format *format = ah__state_format(how->dtype);
    float *floats = (float *)(void *)values;
    bool is_signed = how->which == AH_RUN_MOMENT1;
    if (at->rest)
        convert_planes(at, values, count, how->load);
    else if (how->dtype == how->as)
        memcpy(how->load ? at->state : values, how->load ? values : at->state,
               (size_t)ah__state_bytes(how->dtype, count));
    else if (how->load)
        format->narrow(at->state, floats, count, is_signed);
    else
        format->widen(floats, at->state, count, is_signed);
}

/* Moves elements that fit in the staging buffer, through which device states pass. */
static int move_piece(struct ah_run *run, const struct place *at, bool on_host, char *values, int64_t count,
                      const struct moved *how)
{
    int64_t bytes = ah__state_bytes(how->dtype, count);
    struct place staging = {.state = run->memory.host + run->layout->host_staging_offset};
    staging.rest = at->rest ? staging.state + bytes : NULL;
    if (!on_host && !how->load) {
        AH_TRY(ah__run_copy(run, AH_LANE_D2H, staging.state, at->state, bytes));
        if (at->rest)
            AH_TRY(ah__run_copy(run, AH_LANE_D2H, staging.rest, at->rest, bytes));
    }
    convert(on_host ? at : &staging, values, count, how);
    if (!on_host && how->load) {
        AH_TRY(ah__run_copy(run, AH_LANE_H2D, at->state, staging.state, bytes));
        if (at->rest)
            AH_TRY(ah__run_copy(run, AH_LANE_H2D, at->rest, staging.rest, bytes));
    }
    return AH_OK;
}

/* Returns true if the parameter is frozen and its group's parameters have a device address of their own, where they
 * stay: with several ranks, each rank has all of them. */
static bool stays_whole(const struct ah_run *run, int param)
{
    const struct ah_layout_group *g = &run->layout->groups[run->partition->params[param].group];
    return run->partition->params[param].frozen && !g->on_host && g->frozen_offset < 0;
}

/* Returns the elements [*first, *first + result) of a parameter that a rank has, within [from, from + count). If all
 * ranks have all elements, the rank's share of them. */
static int64_t param_range(int64_t *first, const struct ah_run *run, int param, int rank, int64_t from, int64_t count)
{
    const struct ah_param *p = &run->partition->params[param];
    const struct ah_group *group = &run->partition->groups[p->group];
    int64_t part, all = p->frozen ? ah__frozen_count(group) : group->trained;
    int64_t of_part = ah__part_range(&part, all, rank, run->comm->world_size);
    int64_t begin = (p->frozen ? group->trained : 0) + part - p->offset, end = begin + of_part;
    begin = begin > from ? begin : from;
    end = end < from + count ? end : from + count;
    *first = begin;
    return end > begin ? end - begin : 0;
}

/* Returns how many elements of any dtype fit in the staging buffer, in whole groups. */
static int64_t staging_elements(const struct ah_run *run)
{
    return run->layout->host_staging_bytes / (int64_t)sizeof(float) / AH_PARAM_ALIGN * AH_PARAM_ALIGN;
}

/* Returns the address of a frozen parameter from its element `first` on: in this rank's shard, or, if the parameters
 * have a device address of their own or one rank uses them where they are stored, there. */
static char *frozen_at(const struct ah_run *run, int param, int64_t first, int64_t element)
{
    const struct ah_param *p = &run->partition->params[param];
    const struct ah_group *group = &run->partition->groups[p->group];
    const struct ah_layout_group *g = &run->layout->groups[p->group];
    int64_t part;
    if (stays_whole(run, param))
        return run->memory.device + (g->param_offset >= 0 ? g->param_offset : g->state_offset) +
               (p->offset + first) * element;
    ah__part_range(&part, ah__frozen_count(group), run->comm->rank, run->comm->world_size);
    char *own = g->on_host ? run->memory.host + g->host_frozen_offset : run->memory.device + g->frozen_offset;
    return own + (p->offset - group->trained + first - part) * element;
}

/* Returns the address of a parameter's state from its element `first` on. */
static struct place place_of(const struct ah_run *run, int param, int64_t first, const struct moved *how)
{
    const struct ah_param *p = &run->partition->params[param];
    const struct ah_layout_group *g = &run->layout->groups[p->group];
    int64_t part;
    if (p->frozen)
        return (struct place){frozen_at(run, param, first, ah__dtype_bytes(how->dtype)), NULL};
    ah__run_part(&part, run, p->group);
    char *states = ah__run_states(run, p->group);
    int64_t offset = ah__state_bytes(how->dtype, p->offset + first - part);
    return (struct place){states + ah__state_at(g, (int)how->which) + offset,
                          how->planes ? states + ah__state_at(g, AH_STATE_REST) + offset : NULL};
}

/* Finds the state of a block on disk from its element `first` on, and lowers *count to the elements that are there. */
static int place_on_disk(struct place *at, int64_t *count, struct ah_run *run, int param, int64_t first,
                         const struct moved *how)
{
    const struct ah_param *p = &run->partition->params[param];
    const struct ah_group *group = &run->partition->groups[p->group];
    int64_t part, from = p->offset + first;
    if (p->frozen) {
        ah__part_range(&part, ah__frozen_count(group), run->comm->rank, run->comm->world_size);
        return ah__run_disk_at(&at->state, count, run, p->group, AH_RUN_FROZEN_PART, from - group->trained - part,
                               how->load);
    }
    ah__run_part(&part, run, p->group);
    AH_TRY(ah__run_disk_at(&at->state, count, run, p->group, (int)how->which, from - part, how->load));
    if (how->planes)
        AH_TRY(ah__run_disk_at(&at->rest, count, run, p->group, AH_STATE_REST, from - part, how->load));
    return AH_OK;
}

/* Finds a state from its element `first` on, and lowers *count to what is moved at once. */
static int place_next(struct place *at, int64_t *count, struct ah_run *run, int param, int64_t first,
                      const struct moved *how)
{
    const struct ah_layout_group *g = &run->layout->groups[run->partition->params[param].group];
    int64_t most = g->on_host ? *count : staging_elements(run);
    *at = (struct place){NULL, NULL};
    if (g->on_disk)
        return place_on_disk(at, count, run, param, first, how);
    *count = *count < most ? *count : most;
    *at = place_of(run, param, first, how);
    return AH_OK;
}

/* Moves those elements of [from, from + asked) of a parameter's state that this rank has. `values` begins with element
 * `from`. */
static int move(struct ah_run *run, int param, int64_t from, int64_t asked, char *values, const struct moved *how)
{
    const struct ah_param *p = &run->partition->params[param];
    const struct ah_layout_group *g = &run->layout->groups[p->group];
    if (how->which != AH_RUN_PARAM && run->partition->step.infers)
        return ah__fail(AH_EINTERNAL, "run: the partition was made for inference, without moments");
    if (how->which != AH_RUN_PARAM && p->frozen)
        return ah__fail(AH_EINTERNAL, "run: '%s' is frozen, it has no moments", p->name);
    int64_t first, count = param_range(&first, run, param, run->comm->rank, from, asked);
    if (how->load && stays_whole(run, param)) {
        first = from;
        count = asked;
    }
    if (count == 0)
        return AH_OK;
    values += ah__state_bytes(how->as, first - from);
    for (int64_t done = 0, piece; done < count; done += piece) {
        struct place at;
        piece = count - done;
        AH_TRY(place_next(&at, &piece, run, param, first + done, how));
        AH_TRY(move_piece(run, &at, g->on_host, values + ah__state_bytes(how->as, done), piece, how));
    }
    return AH_OK;
}

static struct moved moved_as(const struct ah_run *run, int param, enum ah_run_state which, bool raw, bool load)
{
    const struct ah_partition *partition = run->partition;
    enum ah_dtype dtype = which == AH_RUN_PARAM ? partition->compute : partition->step.moments;
    return (struct moved){.which = which,
                          .dtype = dtype,
                          .as = raw ? ah__kept_dtype(partition, param, (int)which) : AH_F32,
                          .planes =
                              which == AH_RUN_PARAM && ah__has_rest(partition) && !partition->params[param].frozen,
                          .load = load};
}

static int load(struct ah_run *run, int param, const void *values, const struct moved *how)
{
    char *unchanged;
    memcpy(&unchanged, &values, sizeof unchanged); /* `move` only reads when it loads */
    run->masters_loaded = true;
    return move(run, param, 0, run->partition->params[param].kept, unchanged, how);
}

/* Loads or stores a parameter that is kept in codes, as floats: encodes or decodes it and moves the codes. */
static int move_coded(struct ah_run *run, int param, float *values, bool loads)
{
    const struct ah_partition *partition = run->partition;
    const struct ah_param *p = &partition->params[param];
    int64_t count = ah__shape_count(&p->shape);
    char *kept;
    AH_TRY(ah__new(&kept, (size_t)ah__codes_bytes(partition->codes, count), 1));
    if (loads)
        ah__codes_narrow(kept, values, count, partition->codes);
    int status =
        loads ? ah__run_load_raw(run, param, AH_RUN_PARAM, kept) : ah__run_store_raw(run, param, AH_RUN_PARAM, kept);
    if (status == AH_OK && !loads)
        ah__codes_widen(values, kept, count, partition->codes);
    ah__free(kept);
    return status;
}

int ah__run_load(struct ah_run *run, int param, enum ah_run_state which, const float *values)
{
    const struct moved how = moved_as(run, param, which, false, true);
    float *unchanged;
    memcpy(&unchanged, &values, sizeof unchanged);
    if (run->partition->params[param].coded && which == AH_RUN_PARAM)
        return move_coded(run, param, unchanged, true);
    return load(run, param, values, &how);
}

int ah__run_load_raw(struct ah_run *run, int param, enum ah_run_state which, const void *bytes)
{
    const struct moved how = moved_as(run, param, which, true, true);
    return load(run, param, bytes, &how);
}

/* ---- several ranks: rank 0 asks for a parameter's state, and each of the others gives its part ------------------- */

struct request {
    int param, which; /* param -1: rank 0 wants no more */
    bool raw;
    int status; /* with param -1: the status of storing */
};

static int request_move(struct ah_run *run, struct request *request)
{
    return run->comm->ops->move(run->comm, request, sizeof *request, 0, AH_ALL_RANKS);
}

static int parts_take(struct ah_run *run, int param, int64_t count, char *values, enum ah_dtype as)
{
    for (int rank = 1; rank < run->comm->world_size; rank++) {
        int64_t first, part = param_range(&first, run, param, rank, 0, count);
        if (part)
            AH_TRY(run->comm->ops->move(run->comm, values + ah__state_bytes(as, first), ah__state_bytes(as, part), rank,
                                        0));
    }
    return AH_OK;
}

/* Stores a parameter's state. The others give their parts in any case: they are taken even if this rank's own fails. */
static int store(struct ah_run *run, int param, void *values, const struct moved *how)
{
    int64_t count = run->partition->params[param].kept;
    struct request request = {.param = param, .which = (int)how->which, .raw = how->as == how->dtype};
    if (run->comm->world_size > 1)
        AH_TRY(request_move(run, &request));
    int own = move(run, param, 0, count, values, how);
    int others = run->comm->world_size > 1 ? parts_take(run, param, count, values, how->as) : AH_OK;
    return own == AH_OK ? others : own;
}

int ah__run_store(struct ah_run *run, int param, enum ah_run_state which, float *values)
{
    const struct moved how = moved_as(run, param, which, false, false);
    if (run->partition->params[param].coded && which == AH_RUN_PARAM)
        return move_coded(run, param, values, false);
    return store(run, param, values, &how);
}

int ah__run_store_raw(struct ah_run *run, int param, enum ah_run_state which, void *bytes)
{
    const struct moved how = moved_as(run, param, which, true, false);
    return store(run, param, bytes, &how);
}

static int part_give(struct ah_run *run, const struct request *request, char *values)
{
    const struct moved how = moved_as(run, request->param, (enum ah_run_state)request->which, request->raw, false);
    int64_t first, count = run->partition->params[request->param].kept;
    int64_t part = param_range(&first, run, request->param, run->comm->rank, 0, count);
    if (part == 0)
        return AH_OK;
    AH_TRY(move(run, request->param, 0, count, values, &how));
    return run->comm->ops->move(run->comm, values + ah__state_bytes(how.as, first), ah__state_bytes(how.as, part),
                                run->comm->rank, 0);
}

int ah__run_serve(struct ah_run *run)
{
    struct request request;
    float *values;
    if (run->comm->rank == 0)
        return AH_OK;
    AH_TRY(ah__new(&values, (size_t)ah__partition_largest(run->partition), sizeof *values));
    int status = request_move(run, &request);
    while (status == AH_OK && request.param >= 0) {
        status = part_give(run, &request, (char *)values);
        if (status == AH_OK)
            status = request_move(run, &request);
    }
    ah__free(values);
    if (status == AH_OK && request.status != AH_OK)
        return ah__fail(request.status, "rank 0 could not store what was trained");
    return status;
}

int ah__run_served(struct ah_run *run, int status)
{
    struct request request = {.param = -1, .status = status};
    if (run->comm->world_size == 1 || run->comm->rank != 0)
        return status;
    char message[512];
    snprintf(message, sizeof message, "%s", ah_error());
    int moved = request_move(run, &request);
    return status == AH_OK ? moved : ah__fail(status, "%s", message);
}

/* ---- initial values ---------------------------------------------------------------------------------------------- */

/* Fills uniformly between -sqrt(3) std and sqrt(3) std, so that std is the standard deviation. */
static void uniform_fill(float *values, int64_t count, uint64_t seed, uint64_t first, float std)
{
    double bound = sqrt(3.0) * (double)std;
    for (int64_t i = 0; i < count; i++) {
        double unit = (double)(ah__random_bits(seed, first + (uint64_t)i) >> 11) * 0x1p-53;
        values[i] = (float)(bound * (2 * unit - 1));
    }
}

/* Computes initial values, which depend on the seed, the parameter's name and the position only. */
static void init_values(float *values, const struct ah_param *param, uint64_t seed, int64_t first, int64_t count)
{
    if (param->init == AH_INIT_NORMAL)
        ah__normal_fill(values, count, ah__hash_text(param->name, seed), (uint64_t)first, (double)param->init_std);
    else if (param->init == AH_INIT_UNIFORM)
        uniform_fill(values, count, ah__hash_text(param->name, seed), (uint64_t)first, param->init_std);
    else
        for (int64_t i = 0; i < count; i++)
            values[i] = param->init == AH_INIT_ONES ? 1.0F : 0.0F;
}

/* Initialises a parameter that is kept in codes, whole, since codes are made of whole parameters. */
static int init_coded(struct ah_run *run, int index, uint64_t seed)
{
    const struct ah_param *param = &run->partition->params[index];
    int64_t count = ah__shape_count(&param->shape);
    float *values;
    AH_TRY(ah__new(&values, (size_t)count, sizeof *values));
    init_values(values, param, seed, 0, count);
    int status = move_coded(run, index, values, true);
    ah__free(values);
    return status;
}

/* Initialises a parameter. `fresh`: moments are still zero, as all memory is before it is used. */
static int init_param(struct ah_run *run, int index, uint64_t seed, float *values, const float *zeros, bool fresh)
{
    const struct ah_param *param = &run->partition->params[index];
    int64_t total = ah__shape_count(&param->shape);
    float *nothing;
    memcpy(&nothing, &zeros, sizeof nothing); /* `move` only reads when it loads */
    for (int64_t first = 0; first < total; first += PIECE) {
        int64_t count = total - first < PIECE ? total - first : PIECE, mine;
        if (!stays_whole(run, index) && param_range(&mine, run, index, run->comm->rank, first, count) == 0)
            continue;
        init_values(values, param, seed, first, count);
        enum ah_run_state end = fresh || param->frozen ? AH_RUN_MOMENT1 : AH_RUN_STATES;
        for (enum ah_run_state which = AH_RUN_PARAM; which < end; which++) {
            const struct moved how = moved_as(run, index, which, false, true);
            AH_TRY(move(run, index, first, count, (char *)(which == AH_RUN_PARAM ? values : nothing), &how));
        }
    }
    return AH_OK;
}

static int init_params(struct ah_run *run, uint64_t seed, bool adapters_alone)
{
    bool fresh = run->queue.begun == 0 && !run->masters_loaded;
    int64_t largest = ah__partition_largest(run->partition), piece = largest < PIECE ? largest : PIECE;
    float *values;
    AH_TRY(ah__new(&values, 2 * (size_t)piece, sizeof *values)); /* the second half stays zero */
    run->masters_loaded = true;
    int status = AH_OK;
    for (int p = 0; status == AH_OK && p < run->partition->param_count; p++)
        if (!adapters_alone || run->partition->params[p].adapter)
            status = run->partition->params[p].coded ? init_coded(run, p, seed)
                                                     : init_param(run, p, seed, values, values + piece, fresh);
    ah__free(values);
    return status;
}

int ah__run_init(struct ah_run *run, uint64_t seed)
{
    return init_params(run, seed, false);
}

int ah__run_init_adapters(struct ah_run *run, uint64_t seed)
{
    return init_params(run, seed, true);
}
