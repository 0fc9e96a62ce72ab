# SPDX-License-Identifier: Apache-2.0
"""The pages on the Python package and the C interface, made of docstrings and of the comments in the headers.

It reads the sources and imports nothing, so that no framework is needed. Debian's mkdocstrings does not show inherited methods,
which most of PrecisionDebugger is made of.
"""

import ast
import dataclasses
import functools
import pathlib
import re

# The public names by module; None: those of its __all__.
PUBLIC = {
    "msprobe": None,
    "msprobe.pytorch": None,
    "msprobe.mindspore": None,
    "msprobe.core": ("SingleComparator", "SingleSave"),
    "msprobe.core.config_check": None,
    "msprobe.core.grad_probe.grad_compare": ("GradComparator",),
    "msprobe.core.monitor_v2": None,
    "msprobe.response_anomaly": ("analyze_output_anomaly",),
    "msprobe.response_anomaly.detector": ("ILLDetector",),
    "msprobe.integrations.accelerate": ("record",),
    "msprobe.integrations.lightning": ("RecordCallback",),
    "msprobe.integrations.transformers": ("RecordCallback",),
    "msprobe.pytest_plugin": ("assert_same_run",),
    # The types of results, and the base of the callbacks.
    "msprobe.checking": ("Check",),
    "msprobe.comparison": ("Rows",),
    "msprobe.pytorch.recording": ("Recording", "StepCallbacks"),
}
HEADERS = ("collector.h", "device.h", "monitor.h")
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


# ---------------------------------------------------------------------- Python


@dataclasses.dataclass
class Definition:
    """A class or function, and the module that defines it. `name` is the one that programs use."""

    name: str
    module: str
    node: ast.AST


class Package:
    """The modules of python/msprobe."""

    def __init__(self, root):
        self._folder = pathlib.Path(root) / "python"

    def _path(self, module):
        path = self._folder.joinpath(*module.split("."))
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    @functools.lru_cache(maxsize=None)  # noqa: B019 - one package for a run
    def _tree(self, module):
        return ast.parse(self._path(module).read_text("utf-8"))

    def _is_module(self, module):
        return self._path(module).is_file()

    def description(self, module):
        return ast.get_docstring(self._tree(module)) or ""

    def names(self, module):
        for node in self._tree(module).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                return [name for name in ast.literal_eval(node.value) if not name.startswith("_")]
        raise ValueError(f"{module} has no __all__")

    def find(self, module, name):
        """The definition of a name, also through imports; None if it is no class or function of this package."""
        for node in ast.walk(self._tree(module)):
            if isinstance(node, (ast.ClassDef, *FUNCTION)) and node.name == name and node.col_offset in (0, 4):
                return Definition(name, module, node)
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        source = self._source(module, node)
                        return self.find(source, alias.name) if source.startswith("msprobe") else None
        return None

    def _source(self, module, node):
        if not node.level:
            return node.module
        parts = module.split(".")
        if self._path(module).name == "__init__.py":
            parts.append("")
        return ".".join([*parts[:len(parts) - node.level], *([node.module] if node.module else [])])

    def bases(self, definition):
        """The classes of this package that a class is derived from, nearest first."""
        for base in definition.node.bases:
            first, _, last = ast.unparse(base).rpartition(".")
            found = self.find(definition.module, last)
            if first:  # `debugger.Debugger`: a class of an imported module
                found = next((self.find(f"{self._source(definition.module, node)}.{first}", last)
                              for node in ast.walk(self._tree(definition.module)) if isinstance(node, ast.ImportFrom)
                              for alias in node.names if alias.name == first
                              and self._is_module(f"{self._source(definition.module, node)}.{first}")), None)
            if found and found.node is not definition.node:
                yield found
                yield from self.bases(found)

    def members(self, definition):
        """The public methods and properties of a class, also inherited ones: (name, function, docstring). Not the `on_...` of
        callbacks, which only the training library calls."""
        found = {}
        for one in (definition, *self.bases(definition)):
            for node in one.node.body:
                if isinstance(node, FUNCTION) and not node.name.startswith(("_", "on_")) and not _is_setter(node):
                    known = found.setdefault(node.name, [node, ""])
                    known[1] = known[1] or ast.get_docstring(node) or ""
        return [(name, node, text) for name, (node, text) in found.items()]

    def constructor(self, definition):
        """The __init__ of a class, or of the nearest base; None without one."""
        for one in (definition, *self.bases(definition)):
            for node in one.node.body:
                if isinstance(node, FUNCTION) and node.name == "__init__":
                    return node
        return None

    def docstring(self, definition):
        own = ast.get_docstring(definition.node)
        if own or isinstance(definition.node, FUNCTION):
            return own or ""
        return next((text for text in (ast.get_docstring(base.node) for base in self.bases(definition)) if text), "")


def public(root):
    """(module, Definition) of every public name."""
    package = Package(root)
    for module, names in PUBLIC.items():
        for name in names or package.names(module):
            found = package.find(module, name)
            if found is None:
                raise ValueError(f"{module}.{name} is not defined in this package")
            yield module, found


def arguments_of(node):
    """The names of the arguments, without self and cls."""
    listed = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    return [one.arg for one in listed if one is not None and one.arg not in ("self", "cls")]


def _is_setter(node):
    return any(ast.unparse(one).endswith(".setter") for one in node.decorator_list)


def _is_property(node):
    return any(ast.unparse(one) == "property" for one in node.decorator_list)


def _signature(name, node):
    """The call as text, one argument a line if it is long."""
    if node is None or _is_property(node):
        return name
    arguments = node.args
    for listed in (arguments.posonlyargs, arguments.args):
        listed[:] = [one for one in listed if one.arg not in ("self", "cls")]
    text = f"{name}({ast.unparse(arguments)})"
    if node.returns is not None and ast.unparse(node.returns) != "None":
        text += f" -> {ast.unparse(node.returns)}"
    return re.sub(r", (?=\*?\*?\w+(?::|=|,|\)|$))", ",\n    ", text) if len(text) > 100 else text


def _escaped(text):
    """The text with the characters escaped that Markdown would interpret, except in `code`."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_\[])", r"\\\1", part).replace("<", "&lt;") for part in parts)


def as_markdown(docstring):
    """A docstring: sections such as `Args:` become lists; indented lines elsewhere are code."""
    lines, section = [], False
    for line in docstring.splitlines():
        item = re.match(r"    (\*{0,2}\w+(?:, \w+)*): (.*)", line)
        if re.fullmatch(r"(Args|Attributes|Raises):", line):
            section = True
            lines += [f"**{line}**", ""]
        elif section and item:
            lines.append(f"- `{item[1]}`: {_escaped(item[2])}")
        elif section and line.startswith("    "):
            lines.append(f"  {_escaped(line.strip())}")
        else:
            section = section and not line
            lines.append(line if line.startswith("    ") else _escaped(line))
    return "\n".join(lines)


def _head(package, definition):
    """The call, or the fields of a class of data; nothing of a class that the package alone constructs."""
    node = definition.node
    if isinstance(node, FUNCTION):
        return _signature(definition.name, node)
    if any("dataclass" in ast.unparse(one) for one in node.decorator_list):
        return "\n".join(ast.unparse(one) for one in node.body if isinstance(one, ast.AnnAssign))
    if "Args:" in package.docstring(definition):
        return _signature(definition.name, package.constructor(definition))
    return ""


def _python_entry(package, module, definition):
    node = definition.node
    head = _head(package, definition)
    yield f"### {module}.{definition.name}\n"
    if head:
        yield f"```python\n{head}\n```\n"
    yield as_markdown(package.docstring(definition)) + "\n"
    if isinstance(node, ast.ClassDef):
        for name, member, text in package.members(definition):
            yield f"```python\n.{_signature(name, member)}\n```\n"
            yield as_markdown(text) + "\n"


def python_page(root):
    package = Package(root)
    lines = ["# The Python package\n", "Made of the docstrings. Every error that the package raises itself is a subclass of "
             "`msprobe.core.common.exceptions.CodedException` unless it says otherwise.\n"]
    last = None
    for module, definition in public(root):
        if module != last:
            lines += [f"## {module}\n", as_markdown(package.description(module)) + "\n"]
            last = module
        lines += _python_entry(package, module, definition)
    return "\n".join(lines)


# ---------------------------------------------------------------------- C

COMMENT = re.compile(r"/\*(.*?)\*/\s*?\n", re.DOTALL)
END = re.compile(r"\n(?=\n|/\*)|\Z")  # of a group of declarations
RULER = re.compile(r"-{10,} (.+?)\s*$")


def _text(comment):
    return "\n".join(re.sub(r"^ ?\*? ?", "", line).rstrip() for line in comment.strip().splitlines())


def chunks(header):
    """(comment, code) of each group of declarations in a header. A comment without code is a heading, or the introduction."""
    text = re.sub(r'^#(?!define MSPROBE_\w+ \d).*\n(?:.*\\\n)*|^extern "C" \{\n|^\}\n', "", header, flags=re.MULTILINE)
    place = 0
    while place < len(text):
        comment = COMMENT.match(text, place)
        place = comment.end() if comment else place
        start = place
        if not text.startswith(("\n", "/*"), start):
            place = END.search(text, start).end()
            while text.count("{", start, place) > text.count("}", start, place):  # comments inside a structure
                place = END.search(text, place).end()
        code = text[start:place].strip("\n")
        place += len(re.match(r"\n*", text[place:])[0])
        if comment or code:
            yield (_text(comment[1]) if comment else ""), re.sub(r"\n {20,}", "\n    ", code.replace("MSPROBE_API ", ""))


def functions_in(code):
    """The names of the functions that a group of declarations has."""
    return re.findall(r"\b(msprobe_\w+)\(", re.sub(r"/\*.*?\*/", "", code, flags=re.DOTALL))


def c_page(root):
    folder = pathlib.Path(root) / "include/msprobe"
    lines = ["# The C interface\n", "Made of the headers. `pkg-config msprobe_collector` gives the flags; "
             "[an example](../docs/collector-example.cpp) records two steps.\n"]
    for name in HEADERS:
        lines.append(f"## {name}\n")
        for comment, code in chunks((folder / name).read_text("utf-8")):
            ruler = RULER.match(comment)
            if ruler:
                lines.append(f"### {ruler[1][0].upper()}{ruler[1][1:]}\n")
            elif comment and not comment.startswith("SPDX"):
                lines.append(_escaped(comment).replace("\n- ", "\n\n- ", 1) + "\n")
            if code:
                lines.append(f"```c\n{code}\n```\n")
    wrapper = (folder / "collector.hpp").read_text("utf-8")
    return "\n".join([*lines, f"## collector.hpp, for C++20\n\n```cpp\n{wrapper}```\n"])


def pages(root):
    """(title, name of the file, text) of each page."""
    return [("Python", "python.md", python_page(root)), ("C and C++", "c.md", c_page(root))]
