// SPDX-License-Identifier: Apache-2.0
#include "inspect/template_rating.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "inspect/template_syntax.hpp"

namespace msprobe::inspect::template_rating_test {
namespace {

using formats::Rating;

Rating rating(std::string_view text) {
  const auto found = rate_template(text);
  return found ? found->rating : Rating::ok;
}

bool is_broken(std::string_view text) {
  try {
    parse_template(text);
  } catch (const BrokenTemplate&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("template: what chat templates do is harmless") {
  for (const std::string_view text :
       {"no template", "{{ bos_token }}",
        "{% for m in messages %}{{ m['content'] | trim }}{{ m.role }}{% endfor %}",
        "{%- set ns = namespace(found=false, i=0) -%}{% set ns.i = ns.i + 1 %}{{ messages[ns.i - 1].content "
        "}}",
        "{% macro show(x, indent=2) %}{{ x|tojson(indent=indent) }}{% endmacro %}{{ show(tools) }}",
        "{{ messages[-1]['content'].split('</think>')[-1].strip() }}", "{{ raise_exception('no') }}",
        "{% if x is defined and x is not none and 'a' in x %}a{% elif not y %}b{% else %}c{% endif %}",
        "{% for k, v in args|items %}{{ k }}={{ args[k] }}{% endfor %}",
        "{% set m = {'string': 'str', 'number': 'float'} %}{{ m[tool.type] }}",
        "{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|join(', ') }}",
        "{% raw %}{{ x.__class__ }}{% endraw %}", "{# {{ x.__class__ }} #}",
        "{% generation %}{{ x }}{% endgeneration %}", "{{ '%s' | format(x) }}", "{{ x[1:][::-1] }}"})
    CHECK_MESSAGE(rating(text) == Rating::ok, text);
}

TEST_CASE("template: names that lead to Python's internals are found, however they are written") {
  for (const std::string_view text :
       {"{{ x.__class__ }}", "{{ x['__globals__'] }}", "{{ x['\\x5f_class__'] }}", "{{ x['\\137_class__'] }}",
        "{{ x['__cl' 'ass__'] }}", "{% set a = x|attr('__subclasses__') %}",
        "{{ x|map(attribute='a.__class__')|list }}", "{% set d = {'a': {'b': x.__init__}} %}"})
    CHECK_MESSAGE(rating(text) == Rating::dangerous, text);
}

TEST_CASE("template: what could be such a name is unknown") {
  for (const std::string_view text :
       {"{% macro f() %}{{ caller(x) }}{% endmacro %}{{ f(caller=y.os.system) }}",
        "{{ cycler.next[bos_token].os }}",
        "{{ x.replace[bos_token] }}",
        "{% for m in messages %}{{ loop[bos_token] }}{% endfor %}",
        "{% set ns = namespace(a=1) %}{{ ns[bos_token] }}",
        "{{ x['__cl' ~ 'ass__'] }}",
        "{{ x['__cl' + 'ass__'] }}",
        "{{ x['\\N{LOW LINE}_class__'] }}",
        "{% set a = 'x__class__'[1:] %}{{ x[a] }}",
        "{{ x[('%c%c' | format(95, 95)) ~ 'class__'] }}",
        "{{ x['@class@'|replace('@', '__')] }}",
        "{{ x|attr(y) }}",
        "{{ x['\\\r\n__class__'] }}",
        "{% macro m(k) %}{{ x[k] }}{% endmacro %}{{ m('__a'[:2] ~ 'b') }}",
        "{% set ns = namespace(k='_' * 2) %}{{ x[ns.k] }}",
        "{% for c in 'ab_c' %}{{ x[c ~ c] }}{% endfor %}",
        "{{ x[(lipsum|string)[3] ~ y] }}",
        "{{ x.open('f') }}",
        "{{ '{0.a}'.format(x) }}",
        "{{ x()() }}",
        "{% include 'x' %}",
        "{% import 'x' as y %}",
        "{{ x|from_pretrained }}",
        "{{ x.\xc2\xa0y }}",
        "{{ dict(__class__=1) }}",
        "{{ g.gi_frame }}",
        "{% set range = x.y %}{{ range(1) }}",
        "{% set x %}__class__{% endset %}{{ y[x] }}",
        "{% set l = [] %}{{ l.append('_' '_x') }}{{ y[l[0]] }}",
        "{{ {'append': f}.append('x') }}",
        "{{ [].sort(key=f) }}",
        "{% set n = namespace(a='x' ~ y) %}{{ z[n['a']] }}",
        "{{ [x]|sum('a._b') }}"})
    CHECK_MESSAGE(rating(text) != Rating::ok, text);
}

TEST_CASE("template: what Jinja refuses passes in prose alone") {
  for (const std::string_view text : {"title = {{BERT}: Pre-training}", "{% if x %}", "{{ x", "{{ x ? y }}",
                                      "{% for in x %}{% endfor %}", "{{ 'a }}", "{{ x.__class__ ) }}"}) {
    CHECK_MESSAGE(is_broken(text), text);
    CHECK_MESSAGE(rating(text) == Rating::unknown, text);
  }
  CHECK_FALSE(rate_template("title = {{BERT}: Pre-training}", true));
  CHECK(rate_template("{% if 1 is sameas if %}{% endif %}{{ x.__globals__ }}", true));
  CHECK_FALSE(is_broken("{{ 5if x else 3 }}"));
  CHECK_FALSE(is_broken("{{ x.1.items }}"));
}

TEST_CASE("template: what is nested too deep is unknown") {
  CHECK(rating("{{ " + std::string(100'000, '(') + "x" + std::string(100'000, ')') + " }}") ==
        Rating::unknown);
  CHECK(rating("{{ " + std::string(100'000, '-') + "x }}") == Rating::unknown);
}

}  // namespace msprobe::inspect::template_rating_test
