#include "plan/cost.h"

#include <math.h>

#include "plan/plan_internal.h"

double ah__cost_device_bytes(const struct ah_cost_model *model, struct ah_cpo s)
{
    double activations = model->Ma_in * s.c + model->Ma * (model->L - s.c + 1);
    double parameters = model->Mp * (model->L - s.p + 1);
    return model->half_bytes * (activations + parameters) + model->state_bytes * model->Mp * (model->L - s.o) +
           model->Mgc;
}

/* 14 = 12 + 2 in the paper: half-precision parameters and gradient share one buffer. */
double ah__cost_host_bytes(const struct ah_cost_model *model, struct ah_cpo s)
{
    return (model->state_bytes + model->half_bytes) * model->Mp * s.o + model->Mcc;
}

double ah__cost_forward(const struct ah_cost_model *model, struct ah_cpo s)
{
    return fmax(model->t_fp * model->L, model->t_h2d * s.o + model->t_fp);
}

/* C is the prefix 1..c, P is L-o+1..L-o+p. */
int ah__cost_v(const struct ah_cost_model *model, struct ah_cpo s)
{
    int first = model->L - s.o;
    int last = s.c < first + s.p ? s.c : first + s.p;
    return last > first ? last - first : 0;
}

double ah__cost_sync(const struct ah_cost_model *model, struct ah_cpo s)
{
    int v = ah__cost_v(model, s);
    return v * fmax(model->t_h2d - model->t_fp - model->t_bp, 0) + (s.p - v) * fmax(model->t_h2d - model->t_bp, 0);
}

double ah__cost_backward(const struct ah_cost_model *model, struct ah_cpo s)
{
    double compute =
        model->t_bp * model->L + model->t_fp * s.c + model->t_optim_gpu * (model->L - s.o) + ah__cost_sync(model, s);
    double host = model->t_bp + model->t_d2h + model->t_optim_cpu * s.o;
    return fmax(compute, host);
}

static double seconds(const struct ah_profile *profile, enum ah_item_kind kind)
{
    return (double)profile->costs.ns[kind][AH_CLASS_BLOCK] * 1e-9;
}

/* Returns the mean time of a block over all kinds of blocks, since the model knows only one kind. */
static double mean_seconds(const struct ah_partition *partition, const struct ah_profile *profile,
                           enum ah_item_kind kind)
{
    double block = seconds(profile, kind), mean = block;
    for (int class = AH_CLASS_COUNT; class < partition->class_count; class ++)
        mean += (double)partition->blocks_from[class][1] / partition->layers *
                ((double)profile->costs.ns[kind][class] * 1e-9 - block);
    return mean;
}

static double limit(int64_t bytes)
{
    return bytes > 0 ? (double)bytes : INFINITY;
}

void ah__cost_model_init(struct ah_cost_model *model, const struct ah_partition *partition,
                         const struct ah_profile *profile, const struct ah_budget *budget)
{
    const struct ah_code *block = &partition->code[AH_CLASS_BLOCK];
    double element = (double)ah__dtype_bytes(partition->compute), times = ah__micro_batches(partition);
    const struct ah_group *group = ah__block_group(partition);
    double trained = group->count > 0 ? (double)group->trained / (double)group->count : 1;
    int64_t device, host;
    ah__layout_constants(&device, &host, partition);
    *model = (struct ah_cost_model){
        .L = partition->layers,
        .Ma = times * (double)(block->saved_bytes + block->input_bytes) / element,
        .Ma_in = times * (double)block->input_bytes / element,
        .Mp = (double)group->count, /* with padding, which is moved and stored too */
        .Mgc = (double)device,
        .Mcc = (double)host,
        .M_gpu = limit(budget->device_bytes),
        .M_cpu = limit(budget->host_bytes),
        .half_bytes = element,
        .state_bytes = trained * ah__states_each(partition),
        .t_fp = mean_seconds(partition, profile, AH_ITEM_FORWARD),
        .t_bp = mean_seconds(partition, profile, AH_ITEM_BACKWARD),
        .t_h2d = seconds(profile, AH_ITEM_PREFETCH),
        .t_d2h = seconds(profile, AH_ITEM_OFFLOAD),
        .t_optim_cpu = seconds(profile, AH_ITEM_UPDATE_HOST),
        .t_optim_gpu = seconds(profile, AH_ITEM_UPDATE_DEVICE),
    };
}
