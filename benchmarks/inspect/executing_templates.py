# SPDX-License-Identifier: Apache-2.0
"""Templates of Jinja and others: each writing of a forbidden attribute, in each file that holds a template."""

import json
from typing import Iterator

from cases import SHELL, Case

# Each evaluates to the module os and calls its system, from an object that every template has.
CALL = f".os.system('{SHELL}')"
GLOBALS = "__init__.__globals__"
WRITINGS = {
    "plain": "{{ cycler.__init__.__globals__.os.system('touch PWNED') }}",
    "subscript": "{{ cycler['__init__']['__globals__']['os']['system']('touch PWNED') }}",
    "attr_filter": "{{ ((cycler|attr('__init__'))|attr('__globals__'))['os'].system('touch PWNED') }}",
    "attr_variable": "{% set a = '__init__' %}{{ ((cycler|attr(a))|attr('__globals__')).os.system('touch PWNED') }}",
    "hex_escape": r"{{ cycler['\x5f\x5finit\x5f\x5f']['\x5f\x5fglobals\x5f\x5f'].os.system('touch PWNED') }}",
    "unicode_escape": r"{{ cycler['\u005f_init_\u005f']['\u005f_globals_\u005f'].os.system('touch PWNED') }}",
    "long_unicode_escape": r"{{ cycler['\U0000005f_init__']['\U0000005f_globals__'].os.system('touch PWNED') }}",
    "adjacent_strings": "{{ cycler['_' '_init_' '_']['_' '_globals_' '_'].os.system('touch PWNED') }}",
    "tilde": "{{ cycler['_' ~ '_init__']['_' ~ '_globals__'].os.system('touch PWNED') }}",
    "plus": "{{ cycler['_' + '_init__']['_' + '_globals__'].os.system('touch PWNED') }}",
    "times": "{{ cycler['_' * 2 ~ 'init' ~ '_' * 2]['_' * 2 ~ 'globals' ~ '_' * 2].os.system('touch PWNED') }}",
    "join_filter": "{{ cycler[['__in', 'it__']|join]['__glo' 'bals__'].os.system('touch PWNED') }}",
    "reverse_filter": "{{ cycler['__tini__'|reverse]['__slabolg__'|reverse].os.system('touch PWNED') }}",
    "reverse_slice": "{{ cycler['__tini__'[::-1]]['__slabolg__'[::-1]].os.system('touch PWNED') }}",
    "replace_filter": "{{ cycler['++init++'|replace('+', '_')]['++globals++'|replace('+', '_')].os.system('touch PWNED') }}",
    "replace_method": "{{ cycler['++init++'.replace('+', '_')]['++globals++'.replace('+', '_')].os.system('touch PWNED') }}",
    "lower_filter": "{{ cycler['__INIT__'|lower]['__GLOBALS__'|lower].os.system('touch PWNED') }}",
    "strip_method": "{{ cycler[' __init__ '.strip()][' __globals__ '.strip()].os.system('touch PWNED') }}",
    "split_method": "{{ cycler['__init__ __globals__'.split()[0]]['__init__ __globals__'.split()[1]].os.system('touch PWNED') }}",
    "format_method": "{{ cycler['{0}{0}init{0}{0}'.format('_')]['{0}{0}globals{0}{0}'.format('_')].os.system('touch PWNED') }}",
    "percent": "{{ cycler['%s%sinit__' % ('_', '_')]['%s%sglobals__' % ('_', '_')].os.system('touch PWNED') }}",
    "dict_key": "{{ cycler[dict(__init__=1)|first][dict(__globals__=1)|first].os.system('touch PWNED') }}",
    "dict_items": "{% for k, v in {'a': '__init__'}.items() %}{{ cycler[v]['__globals__'].os.system('touch PWNED') }}{% endfor %}",
    "loop_variable": "{% for a in ['__init__'] %}{% for b in ['__globals__'] %}{{ cycler[a][b].os.system('touch PWNED') }}{% endfor %}{% endfor %}",
    "map_attribute": "{{ ([cycler]|map(attribute='__init__.__globals__.os')|first).system('touch PWNED') }}",
    "selectattr": "{{ ([cycler]|map(attribute='__init__')|map(attribute='__globals__')|list)[0].os.system('touch PWNED') }}",
    "groupby": "{{ ([cycler]|groupby('__init__.__globals__.os'))[0][0].system('touch PWNED') }}",
    "sum_attribute": "{{ ([lipsum]|map(attribute='__globals__')|list)[0]['os'].popen('touch PWNED').read() }}",
    "batch": "{{ (cycler.__class__.__mro__|batch(1)|list) }}{{ lipsum.__globals__.os.system('touch PWNED') }}",
    "namespace": "{% set n = namespace(a='__globals__') %}{{ lipsum[n.a].os.system('touch PWNED') }}",
    "namespace_update": "{% set n = namespace(a='') %}{% set n.a = '__glo' ~ 'bals__' %}{{ lipsum[n.a].os.system('touch PWNED') }}",
    "macro_argument": "{% macro m(o, a) %}{{ o[a].os.system('touch PWNED') }}{% endmacro %}{{ m(lipsum, '__globals__') }}",
    "macro_default": "{% macro m(a='__globals__') %}{{ lipsum[a].os.system('touch PWNED') }}{% endmacro %}{{ m() }}",
    "macro_globals": "{% macro m() %}{% endmacro %}{{ m._func.__globals__['__builtins__'].open('PWNED', 'w') }}",
    "call_block": "{% macro m() %}{{ caller('__globals__') }}{% endmacro %}{% call(a) m() %}{{ lipsum[a].os.system('touch PWNED') }}{% endcall %}",
    "filter_block": "{% set k %}{% filter lower %}__GLOBALS__{% endfilter %}{% endset %}{{ lipsum[k].os.system('touch PWNED') }}",
    "set_block": "{% set k %}__globals__{% endset %}{{ lipsum[k].os.system('touch PWNED') }}",
    "self_reference": "{{ self.__init__.__globals__['__builtins__']['open']('PWNED', 'w') }}",
    "self_with_block": "{% block b %}{% endblock %}{{ self.b.__globals__ if self.b.__globals__ }}{{ lipsum.__globals__.os.mkdir('PWNED') }}",
    "loop_object": "{% for x in [1] %}{{ loop.__init__.__globals__['__builtins__'].open('PWNED', 'w') }}{% endfor %}",
    "joiner": "{{ joiner.__init__.__globals__.os.system('touch PWNED') }}",
    "string_class": "{% for c in ''.__class__.__mro__[1].__subclasses__() %}{% if c.__name__ == 'catch_warnings' %}"
                    "{{ c()._module.__builtins__['open']('PWNED', 'w') }}{% endif %}{% endfor %}",
    "if_statement": "{% if lipsum.__globals__.os.system('touch PWNED') %}{% endif %}",
    "for_statement": "{% for x in [lipsum.__globals__.os.system('touch PWNED')] %}{% endfor %}",
    "with_statement": "{% with a = lipsum.__globals__.os.system('touch PWNED') %}{% endwith %}",
    "include": "{% include [lipsum.__globals__.os.system('touch PWNED') ~ ''] ignore missing %}",
    "test_expression": "{{ 1 if lipsum.__globals__.os.system('touch PWNED') is defined }}",
    "comment_between": "{# }} #}{{ lipsum.__globals__ {#- x -#} if 0 }}{{ lipsum.__globals__.os.system('touch PWNED') }}"[:8]
                       + "{{ lipsum.__globals__.os.system('touch PWNED') }}",
    "raw_then": "{% raw %}{{ a }}{% endraw %}{{ lipsum.__globals__.os.system('touch PWNED') }}",
    "trim_marks": "{{- lipsum.__globals__.os.system('touch PWNED') -}}",
    "plus_marks": "{%+ if lipsum.__globals__.os.system('touch PWNED') +%}{%+ endif +%}",
    "line_break_in_name": "{{ lipsum\n.\n__globals__\n.os\n.system\n('touch PWNED') }}",
    "number_subscript": "{{ (lipsum.__globals__.values()|list)[0] }}{{ lipsum.__globals__.os.system('touch PWNED') }}",
    # Against a reader that follows where texts come from, and looks at what is called.
    "text_of_list": """{% set g = ['x__globals__x']|trim("[]'x") %}{{ {'append': lipsum[g].os.system}.append('touch PWNED') }}""",
    "filled_list": "{% set l = [] %}{{ l.append('__globals__') }}{{ {'append': lipsum[l[0]].os.system}.append('touch PWNED') }}",
    "filled_dict": "{% set d = {} %}{{ d.update(k='__globals__') }}{{ {'append': lipsum[d.k].os.system}.append('touch PWNED') }}",
    "namespace_subscript": "{% set n = namespace(a='__globals__') %}{{ {'append': lipsum[n['a']].os.system}.append('touch PWNED') }}",
    "second_caller": "{% macro m() %}{{ caller('__globals__') }}{% endmacro %}{% call(b) m() %}{% endcall %}"
                     "{% call(a) m() %}{{ {'append': lipsum[a].os.system}.append('touch PWNED') }}{% endcall %}",
    "second_macro": "{% macro m(b) %}{% endmacro %}{% macro m(a) %}{{ {'append': lipsum[a].os.system}.append('touch PWNED') }}{% endmacro %}{{ m('__globals__') }}",
    "loop_neighbour": "{% for x in ['__globals__', ''] %}{% if loop.previtem %}{{ {'append': lipsum[loop.previtem].os.system}.append('touch PWNED') }}{% endif %}{% endfor %}",
    "named_like_keyword": "{% if 1 is sameas if %}{% endif %}{{ lipsum.__globals__.os.system('touch PWNED') }}",
    "sort_key": "{% set l = [] %}{{ l.append('__globals__') }}{{ ['touch PWNED'].sort(key=lipsum[l[0]].os.system) }}",
    "namespace_method": "{% set n = namespace(append=lipsum['__glo' 'bals__'].os.system) %}{{ n.append('touch PWNED') }}",
}
RENDER = "; jinja2.Environment(trim_blocks=True, lstrip_blocks=True{0}).from_string({1}).render(messages=[{{'role': 'user', 'content': 'hi'}}], bos_token='<s>')"


def in_json(template: str) -> str:
    return json.dumps({"tokenizer_class": "LlamaTokenizer", "model_max_length": 4096, "chat_template": template})


def cases() -> Iterator[Case]:
    known = ("plain", "subscript", "hex_escape", "unicode_escape", "long_unicode_escape", "adjacent_strings", "tilde", "plus", "times", "attr_filter",
             "map_attribute", "selectattr", "sum_attribute", "format_method", "percent")
    for number, (name, template) in enumerate(WRITINGS.items()):
        if number % 2:
            yield Case("jinja_" + name, "Jinja", {"tokenizer_config.json": in_json(template)},
                       "import jinja2, json; t = json.load(open(folder + '/tokenizer_config.json'))['chat_template']" + RENDER.format("", "t"),
                       ("jinja2",), name in known)
        else:
            yield Case("jinja_" + name, "Jinja", {"chat_template.jinja": template},
                       "import jinja2; t = open(folder + '/chat_template.jinja').read()" + RENDER.format("", "t"), ("jinja2",), name in known)
    plain = "{{ lipsum.__globals__.os.system('touch PWNED') }}"
    for name, path, content, read in (
        ("template_list", "tokenizer_config.json", json.dumps({"chat_template": [{"name": "default", "template": "x"}, {"name": "tool", "template": plain}]}),
         "json.load(f)['chat_template'][1]['template']"),
        ("processor", "processor_config.json", json.dumps({"chat_template": plain}), "json.load(f)['chat_template']"),
        ("template_folder", "additional_chat_templates/rag.jinja", plain, "f.read()"),
        ("readme", "README.md", "# Model\n\nUse:\n\n" + plain + "\n", "f.read()"),
        ("yaml_prompt", "prompt.yaml", "prompt: |\n  " + plain + "\n", "yaml.safe_load(f)['prompt']"),
        ("toml_prompt", "prompt.toml", f'prompt = """\n{plain}\n"""\n', "tomllib.loads(f.read())['prompt']"),
        ("jsonl_prompt", "prompts.jsonl", json.dumps({"p": "x"}) + "\n" + json.dumps({"p": plain}) + "\n", "json.loads(f.readlines()[1])['p']"),
        ("escaped_json", "tokenizer_config.json", json.dumps({"chat_template": plain}).replace("{", "\\u007b").replace("\\u007b", "{", 1).replace("_", "\\u005f"),
         "json.load(f)['chat\\u005ftemplate']"),
        ("csv_prompt", "prompts.csv", "name,prompt\nx,\"" + plain + "\"\n", "list(csv.DictReader(f))[0]['prompt']"),
        ("license", "LICENSE", "MIT License\n\nCopyright (c) {{ year or lipsum.__globals__.os.system('touch PWNED') }}\n", "f.read()"),
        ("html", "index.html", "<html><body>" + plain + "</body></html>", "f.read()"),
    ):
        yield Case("jinja_in_" + name, "Jinja", {path: content},
                   f"import jinja2, json, csv, yaml, tomllib; f = open(folder + '/{path}'); t = {read}" + RENDER.format("", "t"), ("jinja2", "yaml"))
    yield Case("jinja_do_extension", "Jinja", {"prompt.txt": "{% do lipsum.__globals__.os.system('touch PWNED') %}"},
               "import jinja2; t = open(folder + '/prompt.txt').read()" + RENDER.format(", extensions=['jinja2.ext.do']", "t"), ("jinja2",))
    yield Case("mako", "other templates", {"prompt.mako": "Hello <% open('PWNED', 'w') %>"}, "from mako.template import Template; Template(filename=folder + '/prompt.mako').render()", ("mako",))
    yield Case("mako_expression", "other templates", {"prompt.txt": "Hello ${open('PWNED', 'w')}"}, "from mako.template import Template; Template(filename=folder + '/prompt.txt').render()", ("mako",))
    yield Case("mako_module_block", "other templates", {"prompt.txt": "<%!\nopen('PWNED', 'w')\n%>x"}, "from mako.template import Template; Template(filename=folder + '/prompt.txt').render()", ("mako",))
    yield Case("mako_percent_line", "other templates", {"prompt.txt": "Hello\n% if open('PWNED', 'w'):\nx\n% endif\n"}, "from mako.template import Template; Template(filename=folder + '/prompt.txt').render()", ("mako",))
    yield Case("tornado", "other templates", {"page.html": "{% import os %}{{ os.mkdir('PWNED') }}"}, "from tornado.template import Loader; Loader(folder).load('page.html').generate()", ("tornado",))
    yield Case("bottle", "other templates", {"page.tpl": "% open('PWNED', 'w')\nx\n"}, "from bottle import SimpleTemplate; SimpleTemplate(open(folder + '/page.tpl').read()).render()", ("bottle",))
    yield Case("haystack_adapter", "other templates", {"pipeline.yaml": """components:
  a:
    type: haystack.components.converters.output_adapter.OutputAdapter
    init_parameters: {custom_filters: {}, output_type: str, template: "{{ lipsum.__globals__.os.system('touch PWNED') }}", unsafe: true}
connections: []
"""}, "from haystack import Pipeline; Pipeline.loads(open(folder + '/pipeline.yaml').read()).run({'a': {}})", ("haystack",))

    def gguf_file(folder: str, key: str = "tokenizer.chat_template") -> None:
        import gguf
        import numpy

        writer = gguf.GGUFWriter(folder + "/model.gguf", "llama")
        writer.add_string(key, WRITINGS["reverse_slice"])
        writer.add_tensor("a", numpy.zeros(4, "f4"))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    for name, key in (("gguf", "tokenizer.chat_template"), ("gguf_tool", "tokenizer.chat_template.tool_use"), ("gguf_other_key", "general.description")):
        yield Case("jinja_" + name, "Jinja", lambda folder, key=key: gguf_file(folder, key),
                   f"import gguf, jinja2; f = gguf.GGUFReader(folder + '/model.gguf').fields['{key}']; t = bytes(f.parts[f.data[0]]).decode()"
                   + RENDER.format("", "t"), ("gguf", "jinja2"), name == "gguf")
