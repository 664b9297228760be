/* The bound of lanes that slow each other down.
 *
 * At each moment of a step some set S of lanes runs, and each of them at the rate that the others leave it. However a
 * schedule orders its work, a step lasts the sum of x_S, the time that S alone is what runs, and in it every lane gets
 * through its work: sum over S with lane l of x_S * rate(l, S) >= work(l). The least sum that does is a linear program
 * with a column for each set and a row for each lane. */
#include <Cbc_C_Interface.h>
#include <math.h>

#include "plan/predict.h"
#include "plan/solver.h"

enum { SETS = 1 << AH_LANE_COUNT };

struct program {
    const struct ah_sim_lanes *lanes;
    double work[AH_LANE_COUNT]; /* of the busiest lane 1 */
    double least;               /* the answer; NaN: none */
};

/* As the simulated device has it (dev/sim.h). */
static double rate(const struct ah_sim_lanes *lanes, int lane, int set)
{
    double stretch = 1;
    for (int other = 0; other < AH_LANE_COUNT; other++)
        if (other != lane && set >> other & 1)
            stretch += lanes->slowdown[lane][other] - 1;
    return 1 / stretch;
}

static void row_add(Cbc_Model *cbc, const struct program *program, int lane)
{
    int columns[SETS], used = 0;
    double rates[SETS];
    for (int set = 1; set < SETS; set++)
        if (set >> lane & 1) {
            columns[used] = set - 1;
            rates[used++] = rate(program->lanes, lane, set);
        }
    Cbc_addRow(cbc, "", used, columns, rates, 'G', program->work[lane]);
}

static void solve(void *context)
{
    struct program *program = context;
    Cbc_Model *cbc = Cbc_newModel();
    for (int set = 1; set < SETS; set++)
        Cbc_addCol(cbc, "", 0, INFINITY, 1, 0, 0, NULL, NULL);
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        row_add(cbc, program, lane);
    Cbc_setLogLevel(cbc, 0);
    Cbc_solve(cbc);
    program->least = Cbc_isProvenOptimal(cbc) ? Cbc_getObjValue(cbc) : (double)NAN;
    Cbc_deleteModel(cbc);
}

int ah__plan_bound_contention(struct ah_plan *plan, const struct ah_predictor *predictor)
{
    const double tolerance = 1e-6; /* the solver's, of a row: ten times */
    struct program program = {.lanes = &predictor->costs.lanes};
    int64_t most = 0;
    for (int lane = 0; lane < AH_LANE_COUNT; lane++) {
        int64_t ns = ah__plan_lane_ns(&plan->switches, predictor, (enum ah_lane)lane);
        most = ns > most ? ns : most;
    }
    plan->bound_contention_ns = most;
    if (most == 0)
        return AH_OK;
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        program.work[lane] = (double)ah__plan_lane_ns(&plan->switches, predictor, (enum ah_lane)lane) / (double)most;
    AH_TRY(ah__solver_run(solve, &program));
    if (isnan(program.least))
        return ah__fail(AH_EINTERNAL, "linear program: no schedule of lanes that slow each other down");
    int64_t ns = (int64_t)((double)most * program.least * (1 - tolerance));
    plan->bound_contention_ns = ns > most ? ns : most;
    return AH_OK;
}
