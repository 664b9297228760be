#include "test.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "plan/fixture.h"

static double uniform(struct fixture *draw)
{
    return ah__random_uniform(draw->seed, draw->drawn++);
}

/* Times over several orders of magnitude, so that every term of the objective is the one that binds somewhere. */
static struct ah_cost_model random_model(struct fixture *draw)
{
    struct ah_cost_model m = {.L = (int)fixture_draw(draw, 1, 48), .half_bytes = 2, .state_bytes = 12};
    if (fixture_draw(draw, 0, 1))
        m.half_bytes = 4;
    m.Ma_in = (double)fixture_draw(draw, 1000, 1000000);
    m.Ma = floor(m.Ma_in * (1 + 30 * uniform(draw)));
    m.Mp = (double)fixture_draw(draw, 1000, 10000000);
    m.Mgc = (double)fixture_draw(draw, 0, 100000000);
    m.Mcc = (double)fixture_draw(draw, 0, 100000000);
    m.t_fp = 1e-3 * exp(4 * uniform(draw));
    m.t_bp = m.t_fp * (1 + 2 * uniform(draw));
    m.t_h2d = 1e-3 * exp(6 * uniform(draw));
    m.t_d2h = m.t_h2d * (0.5 + uniform(draw));
    m.t_optim_cpu = 1e-3 * exp(6 * uniform(draw));
    m.t_optim_gpu = 1e-4 * exp(4 * uniform(draw));
    double least = ah__cost_device_bytes(&m, (struct ah_cpo){m.L, m.L, m.L});
    double most = ah__cost_device_bytes(&m, (struct ah_cpo){0, 0, 0});
    m.M_gpu = fixture_draw(draw, 0, 9) ? floor(least + (most - least) * (1.3 * uniform(draw) - 0.15)) : INFINITY;
    m.M_cpu = fixture_draw(draw, 0, 1)
                  ? floor(ah__cost_host_bytes(&m, (struct ah_cpo){0, 0, m.L}) * 1.1 * uniform(draw))
                  : INFINITY;
    return m;
}

/* Returns whether the instance was feasible. */
static bool compare(const struct ah_cost_model *m)
{
    struct ah_cpo s = {-1, -1, -1}, brute;
    double seconds, least;
    int status = ah__cost_solve_milp(&s, &seconds, m);
    assert_int_equal(status, ah__cost_solve_brute(&brute, &least, m));
    if (status != AH_OK) {
        assert_int_equal(status, AH_EBUDGET);
        assert_int_equal(s.c, -1);
        return false;
    }
    assert_true(0 <= s.c && s.c <= m->L && 0 <= s.p && s.p <= s.o && s.o <= m->L);
    assert_true(ah__cost_device_bytes(m, s) <= m->M_gpu);
    assert_true(ah__cost_host_bytes(m, s) <= m->M_cpu);
    assert_true(seconds == ah__cost_forward(m, s) + ah__cost_backward(m, s));
    assert_true(fabs(seconds - least) <= 1e-9 * least);
    return true;
}

static void equals_brute_force(void **state)
{
    struct fixture draw = {.seed = 42};
    int feasible = 0, instances = ah_test_rounds(500, 2000, 20000);
    for (int i = 0; i < instances; i++) {
        struct ah_cost_model m = random_model(&draw);
        feasible += compare(&m);
    }
    assert_true(feasible > instances / 2 && feasible < instances);
}

/* Limits that some plan meets to the byte, or misses by one byte: closer than the solver's own tolerance. */
static void equals_brute_force_at_the_edge(void **state)
{
    struct fixture draw = {.seed = 43};
    for (int i = 0; i < ah_test_rounds(250, 1000, 10000); i++) {
        struct ah_cost_model m = random_model(&draw);
        int o = (int)fixture_draw(&draw, 0, m.L), p = (int)fixture_draw(&draw, 0, o),
            c = (int)fixture_draw(&draw, 0, m.L);
        m.Mp *= 100;
        m.M_gpu = ah__cost_device_bytes(&m, (struct ah_cpo){c, p, o}) - (double)(i % 2);
        m.M_cpu = i % 4 < 2 ? INFINITY : ah__cost_host_bytes(&m, (struct ah_cpo){c, p, o}) - (double)(i % 8 == 2);
        compare(&m);
    }
}

static void brute_force_prefers_the_smallest(void **state)
{
    struct ah_cost_model m = {.L = 5,
                              .Ma = 1,
                              .Ma_in = 1,
                              .Mp = 1,
                              .M_gpu = INFINITY,
                              .M_cpu = INFINITY,
                              .half_bytes = 4,
                              .state_bytes = 12,
                              .t_fp = 1,
                              .t_bp = 1};
    struct ah_cpo s;
    double seconds;
    assert_ok(ah__cost_solve_brute(&s, &seconds, &m));
    assert_true(s.c == 0 && s.p == 0 && s.o == 0 && seconds == 10);
}

static void says_what_would_be_needed(void **state)
{
    struct ah_cost_model m = {.L = 2,
                              .Ma = 3,
                              .Ma_in = 1,
                              .Mp = 10,
                              .Mgc = 7,
                              .M_gpu = 36,
                              .M_cpu = INFINITY,
                              .half_bytes = 2,
                              .state_bytes = 12,
                              .t_fp = 1,
                              .t_bp = 1};
    struct ah_cpo s;
    double seconds;
    assert_fails(ah__cost_solve_milp(&s, &seconds, &m), AH_EBUDGET, "found 36 device");
    assert_fails(ah__cost_solve_brute(&s, &seconds, &m), AH_EBUDGET, "c=p=o=2 needs 37 and");
}

/* What the two file descriptors for text received while both a feasible and an infeasible instance were solved. */
static long printed_bytes(int descriptor)
{
    char path[160];
    snprintf(path, sizeof path, "%s/printed", ah_test_folder());
    FILE *file = fopen(path, "w+");
    assert_non_null(file);
    fflush(NULL);
    int kept = dup(descriptor);
    assert_true(dup2(fileno(file), descriptor) == descriptor);
    struct ah_cost_model m = {.L = 30,
                              .Ma = 3e6,
                              .Ma_in = 1e5,
                              .Mp = 1e6,
                              .M_gpu = 3e8,
                              .M_cpu = INFINITY,
                              .half_bytes = 2,
                              .state_bytes = 12,
                              .t_fp = 1,
                              .t_bp = 2,
                              .t_h2d = 3,
                              .t_d2h = 3,
                              .t_optim_cpu = 4};
    struct ah_cpo s;
    double seconds;
    int solved = ah__cost_solve_milp(&s, &seconds, &m);
    m.M_gpu = 1;
    int refused = ah__cost_solve_milp(&s, &seconds, &m);
    fflush(NULL);
    dup2(kept, descriptor);
    close(kept);
    assert_int_equal(solved, AH_OK);
    assert_int_equal(refused, AH_EBUDGET);
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    fclose(file);
    return bytes;
}

static void prints_nothing(void **state)
{
    assert_int_equal(printed_bytes(STDOUT_FILENO), 0);
    assert_int_equal(printed_bytes(STDERR_FILENO), 0);
}

static void on_interrupt(int number) {}

static void leaves_the_interrupt_handler_alone(void **state)
{
    struct sigaction mine = {.sa_handler = on_interrupt, .sa_flags = SA_NODEFER}, before, after;
    sigaction(SIGINT, &mine, &before);
    struct fixture draw = {.seed = 44};
    struct ah_cost_model m = random_model(&draw);
    compare(&m);
    sigaction(SIGINT, &before, &after);
    assert_true(after.sa_handler == on_interrupt);
    assert_int_equal(after.sa_flags & (SA_NODEFER | SA_RESTART), SA_NODEFER);
}

AH_TEST_CASES("plan/milp", equals_brute_force, equals_brute_force_at_the_edge, brute_force_prefers_the_smallest,
              says_what_would_be_needed, prints_nothing, leaves_the_interrupt_handler_alone)
