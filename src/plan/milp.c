#include <Cbc_C_Interface.h>
#include <math.h>

#include "plan/cost.h"
#include "plan/solver.h"

static double step_seconds(const struct ah_cost_model *model, struct ah_cpo s)
{
    return ah__cost_forward(model, s) + ah__cost_backward(model, s);
}

static bool fits(const struct ah_cost_model *model, struct ah_cpo s)
{
    return ah__cost_device_bytes(model, s) <= model->M_gpu && ah__cost_host_bytes(model, s) <= model->M_cpu;
}

/* Fails, and names the least bytes: (1) needs least with full recomputation and everything offloaded; (2) needs nothing
 * with o = 0. */
static int fail_infeasible(const struct ah_cost_model *model)
{
    struct ah_cpo least = {model->L, model->L, model->L};
    return ah__fail(
        AH_EBUDGET,
        "no (c, p, o) fits equations 1 and 2: found %.0f device and %.0f host bytes, c=p=o=%d needs %.0f and %.0f",
        model->M_gpu, model->M_cpu, model->L, ah__cost_device_bytes(model, least), ah__cost_host_bytes(model, least));
}

int ah__cost_solve_brute(struct ah_cpo *best, double *seconds, const struct ah_cost_model *model)
{
    struct ah_cpo found = {0, 0, 0};
    double least = INFINITY;
    for (int c = 0; c <= model->L; c++)
        for (int p = 0; p <= model->L; p++)
            for (int o = p; o <= model->L; o++) {
                struct ah_cpo s = {c, p, o};
                double t = step_seconds(model, s);
                if (t >= least || !fits(model, s))
                    continue;
                least = t;
                found = s;
            }
    if (isinf(least))
        return fail_infeasible(model);
    *best = found;
    *seconds = least;
    return AH_OK;
}

/* ---- equation 6 as a mixed-integer linear program ---- */

/* V is v of (4). BOTH is 1 if c + o > L, so that v = max(0, min(c + o - L, p)) needs no product: the larger v, the
 * shorter the step (recomputation hides the fetch), hence upper bounds on it are enough. FORWARD and BACKWARD are (3)
 * and (5): the objective pushes each down to the larger of its two lower bounds. */
enum column { C, P, O, V, BOTH, FORWARD, BACKWARD, COLUMNS };

/* Bounds on the three integers. */
struct box {
    struct ah_cpo low, high;
};

struct row {
    char sense; /* 'L': sum <= right, 'G': sum >= right */
    double right;
    double of[COLUMNS];
};
enum { ROWS = 9 };

/* The solver's tolerances are absolute (1e-5 between two objectives), so times are scaled to a largest objective of
 * this size; bytes are counted in blocks. */
static const double TIME_SCALE = 1e6;

static double time_unit(const struct ah_cost_model *m)
{
    double longest = m->L * (2 * m->t_fp + m->t_bp + m->t_h2d + m->t_d2h + m->t_optim_cpu + m->t_optim_gpu) + m->t_h2d;
    return longest > 0 ? longest / TIME_SCALE : 1;
}

static int build_rows(struct row rows[ROWS], const struct ah_cost_model *m)
{
    double L = m->L, u = time_unit(m);
    double bare = fmax(m->t_h2d - m->t_bp, 0) / u;             /* of (4): the wait of a block that does not recompute */
    double hidden = fmax(m->t_h2d - m->t_fp - m->t_bp, 0) / u; /* of (4): the wait of a block that recomputes */
    double set = m->half_bytes * (m->Ma - m->Ma_in), half = m->half_bytes * m->Mp, states = m->state_bytes * m->Mp;
    double block = set + half + states > 0 ? set + half + states : 1; /* unit of (1) */
    double device = m->M_gpu - ah__cost_device_bytes(m, (struct ah_cpo){0, 0, 0});
    double host = m->M_cpu - ah__cost_host_bytes(m, (struct ah_cpo){0, 0, 0});
    struct row all[ROWS] = {
        {'L', 0, {[P] = 1, [O] = -1}},
        {'L', 0, {[V] = 1, [P] = -1}},
        {'L', 0, {[V] = 1, [BOTH] = -L}},
        {'L', 0, {[V] = 1, [C] = -1, [O] = -1, [BOTH] = L}},
        {'G', m->t_fp / u, {[FORWARD] = 1, [O] = -m->t_h2d / u}}, /* (3) */
        {'G',
         (m->t_bp + m->t_optim_gpu) * L / u, /* (5) with (4) */
         {[BACKWARD] = 1, [C] = -m->t_fp / u, [O] = m->t_optim_gpu / u, [P] = -bare, [V] = bare - hidden}},
        {'G', (m->t_bp + m->t_d2h) / u, {[BACKWARD] = 1, [O] = -m->t_optim_cpu / u}},
    };
    int count = 7;
    if (!isinf(device)) /* (1) */
        all[count++] =
            (struct row){'L', device / block, {[C] = -set / block, [P] = -half / block, [O] = -states / block}};
    if (!isinf(host)) /* (2) */
        all[count++] = (struct row){'L', host / block, {[O] = (half + states) / block}};
    for (int i = 0; i < count; i++)
        rows[i] = all[i];
    return count;
}

static void add_row(Cbc_Model *cbc, const struct row *row)
{
    int columns[COLUMNS], used = 0;
    double values[COLUMNS];
    for (int i = 0; i < COLUMNS; i++)
        if (row->of[i] != 0) {
            columns[used] = i;
            values[used++] = row->of[i];
        }
    Cbc_addRow(cbc, "", used, columns, values, row->sense, row->right);
}

static void build(Cbc_Model *cbc, const struct ah_cost_model *model, const struct box *box)
{
    double L = model->L, forward = model->t_fp * L / time_unit(model);
    const struct {
        double low, high, cost;
        char integer;
    } columns[COLUMNS] = {
        [C] = {box->low.c, box->high.c, 0, 1},
        [P] = {box->low.p, box->high.p, 0, 1},
        [O] = {box->low.o, box->high.o, 0, 1},
        [V] = {0, L, 0, 0},
        [BOTH] = {0, 1, 0, 1},
        [FORWARD] = {forward, INFINITY, 1, 0},
        [BACKWARD] = {0, INFINITY, 1, 0},
    };
    for (int i = 0; i < COLUMNS; i++)
        Cbc_addCol(cbc, "", columns[i].low, columns[i].high, columns[i].cost, columns[i].integer, 0, NULL, NULL);
    struct row rows[ROWS];
    int count = build_rows(rows, model);
    for (int i = 0; i < count; i++)
        add_row(cbc, &rows[i]);
}

/* Calls the solver once. False: nothing in the box is feasible. */
static bool solve_box(struct ah_cpo *out, const struct ah_cost_model *model, const struct box *box)
{
    Cbc_Model *cbc = Cbc_newModel();
    build(cbc, model, box);
    Cbc_setLogLevel(cbc, 0);
    Cbc_solve(cbc);
    bool optimal = Cbc_isProvenOptimal(cbc);
    if (optimal) {
        const double *x = Cbc_getColSolution(cbc);
        *out = (struct ah_cpo){(int)lround(x[C]), (int)lround(x[P]), (int)lround(x[O])};
    }
    Cbc_deleteModel(cbc);
    return optimal;
}

struct answer {
    struct ah_cpo s;
    double seconds; /* infinity: no answer so far */
};

/* Searches a box for the best answer. The solver's tolerance allows answers that are a few bytes too large. Smaller
 * switches need even more memory, so a feasible answer has at least one switch larger by one (or fewer blocks on the
 * host): those boxes are searched instead. */
static void search(struct answer *best, const struct ah_cost_model *model, struct box box)
{
    struct ah_cpo s;
    if (!solve_box(&s, model, &box))
        return;
    if (fits(model, s)) {
        double seconds = step_seconds(model, s);
        if (seconds < best->seconds)
            *best = (struct answer){s, seconds};
        return;
    }
    struct box more[] = {box, box, box};
    int count = 0;
    if (ah__cost_host_bytes(model, s) > model->M_cpu) {
        more[count++].high.o = s.o - 1;
    } else {
        more[count++].low.c = s.c + 1;
        more[count++].low.p = s.p + 1;
        more[count++].low.o = s.o + 1;
    }
    for (int i = 0; i < count; i++)
        if (more[i].low.c <= more[i].high.c && more[i].low.p <= more[i].high.p && more[i].low.o <= more[i].high.o)
            search(best, model, more[i]);
}

struct milp {
    const struct ah_cost_model *model;
    struct answer answer;
};

static void solve(void *context)
{
    struct milp *milp = context;
    int L = milp->model->L;
    search(&milp->answer, milp->model, (struct box){{0, 0, 0}, {L, L, L}});
}

int ah__cost_solve_milp(struct ah_cpo *best, double *seconds, const struct ah_cost_model *model)
{
    struct milp milp = {model, {.seconds = INFINITY}};
    AH_TRY(ah__solver_run(solve, &milp));
    if (isinf(milp.answer.seconds))
        return fail_infeasible(model);
    *best = milp.answer.s;
    *seconds = milp.answer.seconds;
    return AH_OK;
}
