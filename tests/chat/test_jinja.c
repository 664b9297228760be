/* The interpreter: what Python's jinja2 3.1.6, set up as transformers does, gives for the same templates,
 * and what is refused. */
#include <string.h>

#include "base/json_python.h"
#include "chat/datum_json.h"
#include "chat/jinja.h"
#include "test.h"

static const char variables[] =
    "{\"a\": [1, 2, 3], \"d\": {\"x\": 1, \"y\": {\"z\": [1.5, null, true]}, \"items\": 7}, \"s\": \"  Hällo wörld  "
    "\", "
    "\"n\": null, \"t\": true, \"f\": 0.1, \"e\": \"\", \"m\": [{\"r\": \"u\", \"c\": \"A\"}, {\"r\": \"a\", \"c\": "
    "\"b\"}, {\"r\": \"u\", \"c\": \"C\"}]}";

/* Heap and text of one rendering. */
struct rendering {
    struct ah_heap heap;
    struct ah_rendered rendered;
};

static int render(struct rendering *out, const char *source)
{
    const struct ah_jinja *jinja = NULL;
    struct ah_datum given;
    cJSON *tree = NULL;
    const struct tm now = {.tm_year = 124, .tm_mon = 6, .tm_mday = 26, .tm_hour = 12, .tm_wday = 5};
    *out = (struct rendering){.heap.most = 1 << 28};
    int status = ah__jinja_open(&jinja, source, strlen(source), "T");
    if (status == AH_OK)
        status = ah__json_value_parse(&tree, variables, strlen(variables), "variables");
    if (status == AH_OK)
        status = ah__datum_from_json(&given, &out->heap, tree);
    if (status == AH_OK)
        status = ah__jinja_render(&out->rendered, jinja, &out->heap, given, &now);
    ah__jinja_close(jinja);
    cJSON_Delete(tree);
    return status;
}

static void rendering_free(struct rendering *rendering)
{
    ah__rendered_free(&rendering->rendered);
    ah__arena_free(&rendering->heap.arena);
}

/* Each row: a template, its text. */
static void check(const char *const rows[][2], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct rendering rendering;
        if (render(&rendering, rows[i][0]) != AH_OK)
            fail_msg("%s: %s", rows[i][0], ah_error());
        const char *text = rendering.rendered.text.text ? rendering.rendered.text.text : "";
        if (strcmp(text, rows[i][1]) != 0)
            fail_msg("%s: '%s', expected '%s'", rows[i][0], text, rows[i][1]);
        rendering_free(&rendering);
    }
}

static void white_space(void **state)
{
    static const char *const rows[][2] = {
        {"a\n", "a"},
        {"a\n\n", "a\n"},
        {"a\r\nb", "a\nb"},
        {"  {% if t %}\n  x\n  {% endif %}\ny", "  x\ny"},
        {"  {%+ if t %}\nx{% endif +%}\ny", "  x\ny"},
        {"a  {%- if t -%}  x  {%- endif -%}  b", "axb"},
        {"a {{- t -}} b", "aTrueb"},
        {"  {{ t }}\n x", "  True\n x"},
        {"a\n  {# c #}\nb", "a\nb"},
        {"a {#- c -#} b", "ab"},
        {"{% raw %}\n {{ x }} {% endraw %}\nz", "\n {{ x }} z"},
        {"{%- raw -%}  {{ x }}  {%- endraw -%}  z", "{{ x }}z"},
        {"x {% if t %}y{% endif %} z", "x y z"},
        {"{{ {'a': {'b': 1}}.a.b }}", "1"},
        {"{{ '%}' }}{{ \"}}\" }}", "%}}}"},
    };
    check(rows, AH_LENGTH(rows));
}

static void values(void **state)
{
    static const char *const rows[][2] = {
        {"{{ [1, 'a', n, t, 1.0, 1e16, 1e-5, 0.1, 123456789.25, -0.0, 1e22] }}",
         "[1, 'a', None, True, 1.0, 1e+16, 1e-05, 0.1, 123456789.25, -0.0, 1e+22]"},
        {"{{ {'a': \"it's\", 'b': '\"', 'c': '\\n\\\\', 'd': ('x',), 'e': 'é\\u200b'} }}",
         "{'a': \"it's\", 'b': '\"', 'c': '\\n\\\\', 'd': ('x',), 'e': 'é\\u200b'}"},
        {"{{ undefined_thing }}|{{ n }}|{{ d.missing }}|{{ d['x'] }}|{{ a[5] }}|{{ a[-1] }}|{{ a.1 }}",
         "|None||1||3|2"},
        {"{{ d.items() | list | length }}{{ d['items'] }}", "37"},
        {"{{ 'a' 'b' }}{{ 1_000 }}{{ 1.5e3 }}", "ab10001500.0"},
        {"{{ a, 1 }}{{ () }}{{ (1) }}", "([1, 2, 3], 1)()1"},
        {"{{ s[2:7] }}|{{ s.strip()[::-1] }}|{{ a[::-1] }}|{{ a[1:] }}|{{ a[-2:] }}|{{ a[:-1:2] }}|{{ 'äbc'[1] }}",
         "Hällo|dlröw olläH|[3, 2, 1]|[2, 3]|[2, 3]|[1]|b"},
        {"{{ d | tojson }}", "{\"x\": 1, \"y\": {\"z\": [1.5, null, true]}, \"items\": 7}"},
        {"{{ d | tojson(indent=2) }}", "{\n  \"x\": 1,\n  \"y\": {\n    \"z\": [\n      1.5,\n      null,\n      "
                                       "true\n    ]\n  },\n  \"items\": 7\n}"},
        {"{{ ['é🙂', '</a>\\t\\x01'] | tojson(ensure_ascii=true) }}{{ ['é<'] | tojson }}{{ [] | tojson(indent=1) "
         "}}",
         "[\"\\u00e9\\ud83d\\ude42\", \"</a>\\t\\u0001\"][\"é<\"][]"},
        {"{{ {'b': 1, 'a': 2} | tojson(sort_keys=true, separators=(',', ':')) }}", "{\"a\":2,\"b\":1}"},
    };
    check(rows, AH_LENGTH(rows));
}

static void operators(void **state)
{
    static const char *const rows[][2] = {
        {"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ -7.5 // 2 }} {{ 5.5 % -2 "
         "}}",
         "3 -4 2 3.5 1024 0.5 -4.0 -0.5"},
        {"{{ 1 + 2 * 3 - 4 }} {{ 'a' * 3 }} {{ [1] + [2] }} {{ 'a' + 'b' }} {{ 1 ~ 'x' ~ n }} {{ true + 1 }}",
         "3 aaa [1, 2] ab 1xNone 2"},
        {"{{ 1 < 2 < 3 }} {{ 1 < 2 > 5 }} {{ 'a' < 'b' }} {{ 1 == 1.0 }} {{ 2 in a }} {{ 'x' not in d }} {{ 'll' in s "
         "}}",
         "True False True True True False True"},
        {"{{ 1 if n else 2 }} {{ 1 if n }} {{ n or 'x' }} {{ 0 and 1 }} {{ not n }} {{ not 1 == 2 }}",
         "2  x 0 True True"},
        {"{{ x is defined }} {{ t is true }} {{ n is none }} {{ n is not none }} {{ d is mapping }} {{ a is sequence "
         "}} "
         "{{ s is iterable }} {{ 1 is eq 1 }} {{ 'a' is in 'ab' }} {{ true is "
         "number }} {{ 1.0 is integer }} {{ x is sequence }}",
         "False True True False True True True True True True False True"},
        {"{{ -1 | string | length }} {{ -a[0] }} {{ 1 ~ 2 | string }}", "2 -1 12"},
        {"{{ ('<' | escape) + '<' }}{{ ('a' | safe) ~ '<' }}", "&lt;&lt;a<"},
    };
    check(rows, AH_LENGTH(rows));
}

static void statements(void **state)
{
    static const char *const rows[][2] = {
        {"{% for x in a %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ "
         "loop.revindex }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
         "10TrueFalse332;21FalseFalse3213;32FalseTrue312;"},
        {"{% for k, v in d.items() if k != 'y' %}{{ k }}={{ v }}{{ loop.last }} {% else %}none{% endfor %}",
         "x=1False items=7True "},
        {"{% for x in [] %}{% else %}none{% endfor %}{% for c in 'äb' %}{{ c }}.{% endfor %}", "noneä.b."},
        {"{% set x = 1 %}{% for y in a %}{% set x = x + y %}{{ x }}{% endfor %}{{ x }}", "2341"},
        {"{% set ns = namespace(x=0) %}{% for y in a %}{% set ns.x = ns.x + y %}{% endfor %}{{ ns.x }}", "6"},
        {"{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set x %} q {% endset %}[{{ x }}]", "12[ q ]"},
        {"{% macro f(x, y=2, z='é') %}{{ x }}{{ y }}{{ z }}{% endmacro %}{{ f(1) }}{{ f(1, z=3) }}{{ f(y=1, x=0) | "
         "length "
         "}}{{ f(*a) }}{{ f(**{'x': 5}) }}",
         "12é12331235"
         "2é"},
        {"{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "3210"},
        {"{% if n %}1{% elif t %}2{% else %}3{% endif %}{% if n %}{% else %}{% if n %}{% else %}x{% endif %}y{% endif "
         "%}",
         "2xy"},
        {"{% for x in a %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% if x == 3 %}{% break %}{% endif %}{% "
         "endfor %}",
         "13"},
        {"a{% generation %}b{% endgeneration %}c", "abc"},
        {"{{ strftime_now('%d %b %Y') }} {{ range(3) | list }} {{ range(5, 0, -2) | list }} {{ dict(a=1) }}",
         "26 Jul 2024 [0, 1, 2] [5, 3, 1] {'a': 1}"},
    };
    check(rows, AH_LENGTH(rows));
}

static void filters(void **state)
{
    static const char *const rows[][2] = {
        {"[{{ s | trim }}] {{ s | upper | trim }} {{ 'hi tHere-x (y' | title }} {{ 'aB' | capitalize }} {{ 'xax' | "
         "trim('x') }}",
         "[Hällo wörld] HÄLLO WÖRLD Hi There-X (Y Ab a"},
        {"{{ m | map(attribute='c') | join('+') }} {{ m | selectattr('r', 'equalto', 'u') | list | length }} {{ m | "
         "rejectattr('r', '==', 'u') | map(attribute='c') | first }} {{ a | select('gt', 1) | list }} {{ a | "
         "map('string') | "
         "list }} {{ ['a', n, e] | select | list }} {{ n | select | list }}{{ n | map('upper') | list }}{{ n | "
         "selectattr('x') | list }}",
         "A+b+C 2 b [2, 3] ['1', '2', '3'] ['a'] [][][]"},
        {"{{ x | default('q') }} {{ e | default('q', true) }} {{ n | d(1) }} {{ a | first }} {{ a | last }} {{ a | "
         "reverse | list }} {{ s | trim | reverse }}",
         "q q None 1 3 [3, 2, 1] dlröw olläH"},
        {"{{ {'b': 1, 'A': 2} | dictsort }} {{ ['b', 'A', 'c'] | sort }} {{ a | sort(reverse=true) }} {{ m | "
         "sort(attribute='c') | map(attribute='c') | list }}",
         "[('A', 2), ('b', 1)] ['A', 'b', 'c'] [3, 2, 1] ['A', 'b', 'C']"},
        {"{{ '12' | int }} {{ 'x' | int(5) }} {{ '1.9' | int }} {{ 'ff' | int(0, 16) }}", "12 5 1 255"},
        {"{{ d | items | list | length }} {{ 'a b' | replace(' ', '_') }} {{ 'aaa' | replace('a', 'b', 2) }} {{ 'ab' | "
         "list }} {{ '<a>' | escape }}",
         "3 a_b bba ['a', 'b'] &lt;a&gt;"},
        {"{% set g = a | select('lt', 2) %}{{ 'y' if a | select('string') else 'n' }}{{ g | list }}{{ g | list }}",
         "y[1][]"},
    };
    check(rows, AH_LENGTH(rows));
}

static void methods(void **state)
{
    static const char *const rows[][2] = {
        {"{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c'.split(' ', 1) }} {{ 'a.b.c'.rsplit('.', 1) }} {{ "
         "' a b c "
         "'.rsplit(none, 1) }} {{ ' a b c '.split(none, 1) }}",
         "['a', 'b', '', 'c'] ['a', 'b'] ['a', 'b c'] ['a.b', 'c'] [' a b', 'c'] ['a', 'b c ']"},
        {"[{{ s.lstrip() }}] [{{ s.rstrip() }}] {{ 'xxaxx'.strip('x') }} {{ 'abc'.startswith('ab') }} {{ "
         "'abc'.endswith(('x', 'bc')) }} {{ 'abc'.removeprefix('a') }}",
         "[Hällo wörld  ] [  Hällo wörld] a True True bc"},
        {"{{ 'they\\'re x1y'.title() }} {{ ','.join(['a', 'b']) }} {{ 'aB'.lower() }}", "They'Re X1Y a,b ab"},
        {"{{ d.get('q', 4) }} {{ d.get('q') }} {{ d.keys() | list }} {{ d.y.z | first }} {{ d.values() | list | length "
         "}}",
         "4 None ['x', 'y', 'items'] 1.5 3"},
        {"{{ 'ß'.upper() }} {{ 'ΑΣ'.lower() }} {{ 'aXbX'.replace('X', '-', 1) }} {{ 'ab'.replace('', '.') }}",
         "SS ας a-bX .a.b."},
    };
    check(rows, AH_LENGTH(rows));
}

static void generation_spans(void **state)
{
    struct rendering rendering;
    assert_ok(render(&rendering, "é{% for x in a %}<{% generation %}{{ x }}é{% endgeneration %}>{% endfor %}"));
    assert_string_equal(rendering.rendered.text.text, "é<1é><2é><3é>");
    assert_int_equal(rendering.rendered.span_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(rendering.rendered.spans[i].begin, 3 + 5 * i);
        assert_int_equal(rendering.rendered.spans[i].end, 6 + 5 * i);
    }
    rendering_free(&rendering);
}

static void refusals(void **state)
{
    static const char *const rows[][2] = {
        {"a\n{{ x.y }}", "T: line 2: 'x' is undefined"},
        {"{% include 'a' %}", "T: line 1: found 'include'"},
        {"{{ 1 | wordwrap }}", "T: line 1: found the filter 'wordwrap'"},
        {"{{ 1 is frob }}", "found the test 'frob'"},
        {"{{ 'a'.center(3) }}", "found a call of 'center'"},
        {"{{ a.append(1) }}", "found a call of 'append'"},
        {"{{ joiner() }}", "found a call of 'joiner'"},
        {"\n\n{{ raise_exception('No ' ~ s) }}", "T: line 3: the template refuses: No   H"},
        {"{{ 1 / 0 }}", "division by zero"},
        {"{{ 9223372036854775807 + 1 }}", "64 bits"},
        {"{{ 'a' + 1 }}", "'+' found between str and int"},
        {"{% if %}", "T: line 1: found '%}', expected an expression"},
        {"{% for x in a %}", "expected endfor"},
        {"{{ 'a", "closing quote"},
        {"{# a", "in a comment"},
        {"{{ (1 }}", "closing bracket"},
        {"{% break %}", "within a loop"},
        {"{% set d.x = 1 %}", "expected a namespace"},
        {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "deep"},
        {"{% for i in range(99999) %}{% for k in range(9) %}{% if not not not not not not not not not not not not not "
         "not "
         "not not not not not not not not not not not not not not not not not not not not not not not not t %}{% endif "
         "%}"
         "{% endfor %}{% endfor %}",
         "10000000 steps"},
        {"{% for i in range(99999) %}{% for k in range(99999) %}{% endfor %}{% endfor %}", "268435456 bytes"},
        {"{% call f() %}{% endcall %}", "found 'call', expected a statement that is known here"},
        {"{{ '%s' % 1 }}", "'%' found between str and int"},
        {"{{ '\\0' }}", "a string's escape by name or octal digits"},
        {"{% macro f(x) %}{% endmacro %}{{ f(1, y=2) }}", "macro 'f' found arguments that it does not have"},
        {"{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
         "more than 67108864 bytes"},
        {"{% set ns = namespace(x=1) %}{% for i in range(999) %}{% set ns.x = [ns.x] %}{% endfor %}",
         "nested more than 200"},
        {"{{ range(100001) }}", "more than 100000"},
        {"{{ m | tojson }}{{ namespace() | tojson }}", "tojson found a value that is Namespace"},
        {"{% set ns = namespace(_x=1) %}", "begins with '_'"},
        {"{{ a[::0] }}", "step 0"},
        {"{{ 'a' < 1 }}", "'<' found between str and int"},
        {"{{ m | map(attribute='c') | length }}", "found a generator"},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct rendering rendering;
        int status = render(&rendering, rows[i][0]);
        if (status != AH_EINPUT || !strstr(ah_error(), rows[i][1]))
            fail_msg("%s: status %d, '%s', expected '%s'", rows[i][0], status, status ? ah_error() : "", rows[i][1]);
        rendering_free(&rendering);
    }
}

/* However long and deep a template is, its parser ends. */
static void deep_templates(void **state)
{
    enum { DEEP = 100000 };
    static const char *const parts[] = {"(", "[", "{% if t %}", "-", "not ", "{1:"};
    static char text[DEEP * 16];
    for (size_t i = 0; i < AH_LENGTH(parts); i++) {
        struct rendering rendering;
        size_t length = 0;
        bool block = parts[i][0] == '{' && parts[i][1] == '%';
        if (!block)
            length += (size_t)sprintf(text, "{{ ");
        for (int k = 0; k < DEEP; k++, length += strlen(parts[i]))
            memcpy(text + length, parts[i], strlen(parts[i]) + 1);
        assert_int_equal(render(&rendering, text), AH_EINPUT);
        rendering_free(&rendering);
    }
    size_t length = (size_t)sprintf(text, "{{ 1");
    for (int k = 0; k < DEEP; k++, length += 2)
        memcpy(text + length, "+1", 3);
    memcpy(text + length, " }}", 4);
    struct rendering rendering;
    assert_fails(render(&rendering, text), AH_EINPUT, "deep");
    rendering_free(&rendering);
}

/* What would take hours or all memory ends early: bounded are steps, values, text, and bytes that are looked at. */
static void bounded(void **state)
{
    static const char *const rows[][2] = {
        {"{% set l = range(99999) | list %}{% for i in l %}{% set y = 99998 in l %}{% endfor %}", "looks at more than"},
        {"{% set b = 'a' * 1000000 ~ 'b' %}{{ ('b' * 1000000).strip(b) }}", "looks at more than"},
        {"{% set b = 'b' ~ 'a' * 100000 %}{{ ('a' * 20000000).rsplit(b) }}", "looks at more than"},
        {"{{ ('x' * 6000000) | replace('', 'y' * 100) }}", "more than 67108864 bytes of text"},
        {"{{ [[[1]]] | tojson(indent=1000000000) }}", "more than 67108864 bytes of text"},
        {"{{ 'ab' * 9223372036854775807 }}", "more than 67108864 bytes of text"},
        {"{{ (['a' * 1000000] * 70) | join }}", "more than 67108864 bytes of text"},
        {"{% macro f(n) %}{{ 'x' * 40000000 }}{{ f(n) }}{% endmacro %}{{ f(1) }}",
         "values of more than 268435456 bytes"},
        {"{{ ([1] * 9223372036854775807) | length }}", "values of more than 268435456 bytes"},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct rendering rendering;
        int status = render(&rendering, rows[i][0]);
        if (status != AH_EINPUT || !strstr(ah_error(), rows[i][1]))
            fail_msg("%s: status %d, '%s', expected '%s'", rows[i][0], status, status ? ah_error() : "", rows[i][1]);
        assert_true(rendering.rendered.text.length <= 1 << 26);
        rendering_free(&rendering);
    }
}

AH_TEST_CASES("chat/jinja", white_space, values, operators, statements, filters, methods, generation_spans, refusals,
              bounded, deep_templates)
