/* The paper's cost model (equations 1-5) and its integer program (equation 6). Only these files use the paper's
 * symbols. */
#ifndef AH_PLAN_COST_H
#define AH_PLAN_COST_H

#include "partition/partition.h"
#include "profile/profile.h"

struct ah_cost_model {
    int L;
    double Ma, Ma_in, Mp; /* elements: all activations of a block, its input, its parameters */
    double Mgc, Mcc;      /* bytes outside the blocks, device and host */
    double M_gpu, M_cpu;  /* limits, bytes; infinity: no limit */
    double half_bytes;    /* bytes of an activation or compute parameter: 2 in the paper, 4 in fp32 */
    double state_bytes;   /* optimizer states per parameter: 12, with moments in BF16 8; the mean over a block, whose
                           * frozen parameters have no states */
    double t_fp, t_bp, t_h2d, t_d2h, t_optim_cpu, t_optim_gpu; /* seconds, one block */
};

struct ah_cpo {
    int c, p, o;
};

double ah__cost_device_bytes(const struct ah_cost_model *model, struct ah_cpo s); /* (1), left side */
double ah__cost_host_bytes(const struct ah_cost_model *model, struct ah_cpo s);   /* (2), left side */
double ah__cost_forward(const struct ah_cost_model *model, struct ah_cpo s);      /* (3) */
int ah__cost_v(const struct ah_cost_model *model, struct ah_cpo s);               /* |C and P| */
double ah__cost_sync(const struct ah_cost_model *model, struct ah_cpo s);         /* (4) */
double ah__cost_backward(const struct ah_cost_model *model, struct ah_cpo s);     /* (5) */

/* Fills the model from a partition and a profile, with the memory limits of `budget`. */
void ah__cost_model_init(struct ah_cost_model *model, const struct ah_partition *partition,
                         const struct ah_profile *profile, const struct ah_budget *budget);

/* Solve (6): argmin of (3)+(5) under (1), (2), 0 <= p <= o <= L, 0 <= c <= L. *seconds receives the minimum. AH_EBUDGET
 * if nothing is feasible. Brute force: ties go to the smallest (c, p, o) in lexical order. */
int ah__cost_solve_milp(struct ah_cpo *best, double *seconds, const struct ah_cost_model *model);
int ah__cost_solve_brute(struct ah_cpo *best, double *seconds, const struct ah_cost_model *model);

#endif
