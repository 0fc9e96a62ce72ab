# SPDX-License-Identifier: Apache-2.0
"""Code in a folder: what Python, its tools, shells, version control and archives run by themselves."""

import io
import json
import py_compile
import tarfile
import tempfile
from typing import Iterator

from cases import CODE, SHELL, Case
from executing_pickles import tarred, zipped

RUN = "import subprocess, sys, os\n"


def transformers_code() -> Iterator[Case]:
    config = {"model_type": "net", "architectures": ["Net"]}
    module = CODE + "\nfrom transformers import PretrainedConfig\nclass C(PretrainedConfig): model_type = 'net'\n"
    yield Case("auto_config", "Python source", {"config.json": json.dumps({**config, "auto_map": {"AutoConfig": "net.C"}}), "net.py": module},
               "from transformers import AutoConfig; AutoConfig.from_pretrained(folder, trust_remote_code=True)", ("transformers",), True)
    yield Case("auto_tokenizer", "Python source", {"tokenizer_config.json": json.dumps({"tokenizer_class": "T", "auto_map": {"AutoTokenizer": ["tok.T", None]}}), "config.json": json.dumps(config),
                                         "tok.py": CODE}, "from transformers import AutoTokenizer; AutoTokenizer.from_pretrained(folder, trust_remote_code=True)", ("transformers",), True)
    yield Case("auto_processor", "Python source", {"preprocessor_config.json": json.dumps({"image_processor_type": "P", "auto_map": {"AutoImageProcessor": "proc.P"}}), "proc.py": CODE},
               "from transformers import AutoImageProcessor; AutoImageProcessor.from_pretrained(folder, trust_remote_code=True)", ("transformers",))
    yield Case("custom_pipeline", "Python source", {"config.json": json.dumps({"model_type": "bert", "custom_pipelines": {"mine": {"impl": "pipe.P", "pt": ["AutoModel"], "type": "text"}}}),
                                          "pipe.py": CODE}, "from transformers import pipeline; pipeline('mine', model=folder, trust_remote_code=True)", ("transformers",))
    yield Case("custom_generate", "Python source", {"custom_generate/generate.py": CODE + "\ndef generate(model, *a, **k): pass\n"},
               "import torch; from transformers import GPT2Config, GPT2LMHeadModel; m = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=9));"
               " m.generate(torch.tensor([[1]]), custom_generate=folder, trust_remote_code=True)", ("transformers", "torch"))
    yield Case("sentence_module", "Python source", {"modules.json": json.dumps([{"idx": 0, "name": "0", "path": "", "type": "net.Net"}]), "net.py": CODE},
               "from sentence_transformers import SentenceTransformer; SentenceTransformer(folder, trust_remote_code=True, device='cpu')", ("sentence_transformers",), True)
    yield Case("evaluate_metric", "Python source", {"metric.py": CODE + "\nimport evaluate\nclass M(evaluate.Metric): pass\n"}, "import evaluate; evaluate.load(folder + '/metric.py')", ("evaluate",))


def python_folders() -> Iterator[Case]:
    for name, files, load in (
        ("main", {"__main__.py": CODE}, RUN + "subprocess.run([sys.executable, folder])"),
        ("package", {"model/__init__.py": CODE}, "import sys; sys.path.insert(0, folder); import model"),
        ("namespace", {"model/net.py": CODE}, "import sys; sys.path.insert(0, folder); import model.net"),
        ("sitecustomize", {"sitecustomize.py": CODE}, RUN + "subprocess.run([sys.executable, '-c', ''], env={**os.environ, 'PYTHONPATH': folder})"),
        ("usercustomize", {"usercustomize.py": CODE}, RUN + "subprocess.run([sys.executable, '-c', 'import usercustomize'], env={**os.environ, 'PYTHONPATH': folder})"),
        ("shadowed", {"random.py": CODE, "train.txt": "x"}, RUN + "subprocess.run([sys.executable, '-c', 'import sys; sys.path.insert(0, sys.argv[1]); import random', folder])"),
        ("path_file", {"x.pth": f"import os; os.system('{SHELL}')\n"}, "import site; site.addsitedir(folder)"),
        ("path_file_tab", {"x.pth": "# paths\nimport\tos; os.mkdir('PWNED')\n"}, "import site; site.addsitedir(folder)"),
        ("path_file_weights", {"pytorch_model.pth": "import os; os.mkdir('PWNED')\n"}, "import site; site.addsitedir(folder)"),
        ("setup", {"setup.py": CODE + "\nimport setuptools\nsetuptools.setup(name='m')\n"}, RUN + "subprocess.run([sys.executable, folder + '/setup.py', '--version'])"),
        ("build_backend", {"pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "b"\nbackend-path = ["."]\n', "b.py": "import os\nopen(os.environ['HERE'] + '/PWNED', 'w')\n"},
         RUN + "subprocess.run([sys.executable, '-m', 'pip', 'install', '--no-build-isolation', '--no-deps', '--target', 't', folder], env={**os.environ, 'HERE': os.getcwd()})"),
        ("requirements", {"requirements.txt": "-e .\n", "setup.py": "import os\nopen(os.environ['HERE'] + '/PWNED', 'w')\n"},
         RUN + "subprocess.run([sys.executable, '-m', 'pip', 'install', '--no-build-isolation', '--no-deps', '--target', 't', '-r', folder + '/requirements.txt'], cwd=folder, env={**os.environ, 'HERE': os.getcwd()})"),
        ("conftest", {"conftest.py": CODE}, RUN + "subprocess.run([sys.executable, '-m', 'pytest', '-q', folder, '-p', 'no:cacheprovider'])"),
        ("test_file", {"test_model.py": CODE}, RUN + "subprocess.run([sys.executable, '-m', 'pytest', '-q', folder, '-p', 'no:cacheprovider'])"),
        ("doctest_text", {"test_prompts.txt": f"Prompts\n\n>>> {CODE}\n"}, RUN + "subprocess.run([sys.executable, '-m', 'pytest', '-q', folder, '-p', 'no:cacheprovider'])"),
        ("pytest_option", {"pytest.ini": "[pytest]\naddopts = -p projector\n", "projector.py": CODE}, RUN + "subprocess.run([sys.executable, '-m', 'pytest', '-q'], cwd=folder, env={**os.environ, 'PYTHONPATH': folder}); os.path.exists(folder + '/PWNED') and os.mkdir('PWNED')"),
        ("pytest_report", {"pytest.ini": "[pytest]\naddopts = --junitxml=PWNED\n"}, RUN + "subprocess.run([sys.executable, '-m', 'pytest', '-q'], cwd=folder); os.path.exists(folder + '/PWNED') and os.mkdir('PWNED')"),
        ("pylintrc", {"pylintrc": f"[MAIN]\ninit-hook={CODE}\n", "a.txt": "x"}, RUN + "subprocess.run([sys.executable, '-m', 'pylint', '--rcfile', folder + '/pylintrc', 'x.py'])"),
        ("mypy_plugin", {"mypy.ini": "[mypy]\nplugins = p.py\n", "p.py": "import os\nopen(os.environ['HERE'] + '/PWNED', 'w')\n"}, RUN + "subprocess.run([sys.executable, '-m', 'mypy', '-c', '1'], cwd=folder, env={**os.environ, 'HERE': os.getcwd()})"),
        ("sphinx", {"conf.py": "import os\nopen(os.environ['HERE'] + '/PWNED', 'w')\n", "index.rst": "x\n"}, RUN + "subprocess.run([sys.executable, '-m', 'sphinx', folder, 'o'], env={**os.environ, 'HERE': os.getcwd()})"),
        ("noxfile", {"noxfile.py": "import os\nopen(os.environ['HERE'] + '/PWNED', 'w')\n"}, RUN + "subprocess.run([sys.executable, '-m', 'nox', '-l'], cwd=folder, env={**os.environ, 'HERE': os.getcwd()})"),
        ("ipython_startup", {"profile_default/startup/00.py": CODE}, RUN + "subprocess.run([sys.executable, '-m', 'IPython', '-c', '1'], env={**os.environ, 'IPYTHONDIR': folder})"),
        ("matplotlibrc", {"matplotlibrc": "backend: module://projector\n", "projector.py": "import os\nopen(os.environ['HERE'] + '/PWNED', 'w')\n"},
         RUN + "subprocess.run([sys.executable, '-c', 'import matplotlib.pyplot as p; p.figure()'], cwd=folder, env={**os.environ, 'HERE': os.getcwd()})"),
        ("entry_points", {"m-1.dist-info/METADATA": "Name: m\nVersion: 1\n", "m-1.dist-info/entry_points.txt": "[pytest11]\nm = projector\n", "projector.py": CODE},
         RUN + "subprocess.run([sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '.'], env={**os.environ, 'PYTHONPATH': folder})"),
        ("handler", {"handler.py": CODE + "\nclass EndpointHandler:\n  def __init__(self, path=''): pass\n", "config.json": "{}"}, "import sys; sys.path.insert(0, folder); from handler import EndpointHandler"),
        ("script", {"zero_to_fp32.py": "#!/usr/bin/env python3\n" + CODE}, RUN + "subprocess.run([sys.executable, folder + '/zero_to_fp32.py'])"),
        ("script_without_ending", {"convert": "#!/usr/bin/env python3\n" + CODE}, RUN + "subprocess.run([sys.executable, folder + '/convert'])"),
        ("stub_folder", {"inference.ipy": "!touch PWNED\n"}, RUN + "subprocess.run([sys.executable, '-m', 'IPython', folder + '/inference.ipy'])"),
        ("notebook", {"demo.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": CODE, "metadata": {}, "outputs": [], "execution_count": None, "id": "a"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})},
         RUN + "subprocess.run([sys.executable, '-m', 'IPython', folder + '/demo.ipynb'])"),
        ("notebook_shell", {"demo.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": ["!touch PWNED"], "metadata": {}, "outputs": [], "execution_count": None, "id": "a"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})},
         RUN + "subprocess.run([sys.executable, '-m', 'IPython', folder + '/demo.ipynb'])"),
        ("literate", {"README.md": f"```python\n{CODE}\n```\n", "Makefile": "all:\n\t@sed -n '/^```python/,/^```$$/p' README.md | grep -v '```' | (cd $(HERE) && python3)\n"},
         RUN + "subprocess.run(['make', '-C', folder, 'HERE=' + os.getcwd()])"),
    ):
        yield Case("python_" + name, "Python source", files, load, ("pytest",) if "pytest" in load else ("IPython",) if "IPython" in load else (), name in ("path_file", "conftest"))

    def compiled(folder: str, path: str = "model.pyc") -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".py") as source:
            source.write(CODE)
            source.flush()
            py_compile.compile(source.name, folder + "/" + path)

    yield Case("python_bytecode", "Python bytecode", compiled, "import sys; sys.path.insert(0, folder); import model")
    yield Case("python_bytecode_other", "Python bytecode", lambda folder: compiled(folder, "weights.bin"), "import runpy, shutil; shutil.copy(folder + '/weights.bin', 'w.pyc'); runpy.run_path('w.pyc')")
    yield Case("python_zipapp", "archive", {"app.pyz": b"#!/usr/bin/env python3\n" + zipped({"__main__.py": CODE})}, RUN + "subprocess.run([sys.executable, folder + '/app.pyz'])")
    yield Case("python_zip_import", "archive", {"model.zip": zipped({"net.py": CODE})}, "import sys; sys.path.insert(0, folder + '/model.zip'); import net")
    yield Case("python_egg", "archive", {"net-1-py3.11.egg": zipped({"net.py": CODE, "EGG-INFO/PKG-INFO": "Name: net\n"})}, "import sys, glob; sys.path[:0] = glob.glob(folder + '/*.egg'); import net")
    yield Case("python_wheel_path", "archive", {"net-1-py3-none-any.whl": zipped({"x.pth": "import os; os.mkdir('PWNED')\n", "net-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: net\nVersion: 1\n",
               "net-1.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "net-1.dist-info/RECORD": ""})},
               RUN + "subprocess.run([sys.executable, '-m', 'pip', 'install', '--no-index', '--no-deps', '--target', 't', folder + '/net-1-py3-none-any.whl']); import site; site.addsitedir('t')")
    yield Case("python_source_archive", "archive", {"net-1.tar.gz": tarred({"net-1/setup.py": b"import os\nopen(os.environ['HERE'] + '/PWNED', 'w')\n", "net-1/PKG-INFO": b"Metadata-Version: 2.1\nName: net\nVersion: 1\n"}, "gz")},
               RUN + "subprocess.run([sys.executable, '-m', 'pip', 'install', '--no-build-isolation', '--no-deps', '--target', 't', folder + '/net-1.tar.gz'], env={**os.environ, 'HERE': os.getcwd()})")
    yield Case("python_zipapp_in_safetensors", "archive", {"model.safetensors": b"\x02\0\0\0\0\0\0\0{}" + zipped({"__main__.py": CODE})}, RUN + "subprocess.run([sys.executable, folder + '/model.safetensors'])")
    yield Case("python_zipapp_in_text", "archive", {"README.md": b"# Model\n\n" + zipped({"__main__.py": CODE})}, RUN + "subprocess.run([sys.executable, folder + '/README.md'])")


def archives() -> Iterator[Case]:
    extract = "import os, tarfile; os.mkdir('x'); tarfile.open(folder + '/{}').extractall('x', filter='fully_trusted')"
    yield Case("tar_parent", "archive", {"weights.tar": tarred({"../PWNED": b"x"})}, extract.format("weights.tar"))
    yield Case("tar_gz_parent", "archive", {"weights.tar.gz": tarred({"./../PWNED": b"x"}, "gz")}, extract.format("weights.tar.gz"))
    yield Case("tar_unpacked_by_shutil", "archive", {"weights.tgz": tarred({"../PWNED": b"x"}, "gz")}, "import os, shutil; os.mkdir('x'); shutil.unpack_archive(folder + '/weights.tgz', 'x')")

    def linked(kind: bytes) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            link = tarfile.TarInfo("a")
            link.type, link.linkname = kind, ".."
            archive.addfile(link)
            facts = tarfile.TarInfo("a/PWNED")
            facts.size = 1
            archive.addfile(facts, io.BytesIO(b"x"))
        return out.getvalue()

    yield Case("tar_link", "archive", {"model.tar": linked(tarfile.SYMTYPE)}, extract.format("model.tar"))
    yield Case("tar_in_zip", "archive", {"model.zip": zipped({"m.tar": tarred({"../PWNED": b"x"})})}, "import zipfile, io, os, tarfile; os.mkdir('x'); z = zipfile.ZipFile(folder + '/model.zip');"
               " tarfile.open(fileobj=io.BytesIO(z.read('m.tar'))).extractall('x', filter='fully_trusted')")
    yield Case("tar_other_ending", "archive", {"model.bin": tarred({"../PWNED": b"x"}, "xz")}, extract.format("model.bin"))
    yield Case("nemo_parent", "archive", {"model.nemo": tarred({"./model_config.yaml": b"a: 1\n", "../PWNED": b"x"})}, extract.format("model.nemo"))

    def names(folder: str) -> None:
        for name, text in (("--checkpoint=1", ""), ("--checkpoint-action=exec=sh run", ""), ("run", SHELL + "\ncp PWNED ../here\n"), ("weights.txt", "x" * 20000)):
            open(f"{folder}/{name}", "w").write(text)

    yield Case("file_names", "shell", names, RUN + "subprocess.run('tar cf ../a.tar *', shell=True, cwd=folder)")


def shells() -> Iterator[Case]:
    here = "../here/PWNED"
    for name, files, load, tool in (
        ("script", {"download.sh": f"#!/bin/sh\n{SHELL}\n"}, "['sh', folder + '/download.sh']", "sh"),
        ("no_ending", {"install": f"#!/bin/bash\n{SHELL}\n"}, "['bash', folder + '/install']", "bash"),
        ("environment", {".env": f"HF_HOME=cache\nTOKEN=$({SHELL})\n"}, "['bash', '-c', 'set -a; . ' + folder + '/.env']", "bash"),
        ("makefile", {"Makefile": f"all:\n\t{SHELL}\n"}, "['make', '-f', folder + '/Makefile']", "make"),
        ("makefile_function", {"Makefile": f"X := $(shell {SHELL})\nall:\n"}, "['make', '-f', folder + '/Makefile']", "make"),
        ("makefile_include", {"config.mk": f"X := $(shell {SHELL})\nall:\n"}, "['make', '-f', folder + '/config.mk']", "make"),
        ("sed", {"clean.sed": f"1e {SHELL}\n"}, "['sed', '-f', folder + '/clean.sed', '/etc/passwd']", "sed"),
        ("awk", {"clean.awk": f'BEGIN {{ system("{SHELL}") }}\n'}, "['awk', '-f', folder + '/clean.awk']", "awk"),
        ("perl", {"tok.perl": f"system('{SHELL}');\n"}, "['perl', folder + '/tok.perl']", "perl"),
        ("cmake", {"ops.cmake": f"execute_process(COMMAND {SHELL})\n"}, "['cmake', '-P', folder + '/ops.cmake']", "cmake"),
        ("meson", {"meson.build": "project('m')\nrun_command('touch', '" + here + "', check: false)\n"}, "['meson', 'setup', folder + '/b', folder]", "meson"),
        ("ninja", {"build.ninja": f"rule r\n  command = {SHELL}\nbuild PWNED: r\n"}, "['ninja', '-f', folder + '/build.ninja']", "ninja"),
        ("node", {"package.json": json.dumps({"name": "m", "version": "1.0.0", "scripts": {"install": "touch ../here/PWNED"}})}, "['npm', 'install', '--prefix', folder, '--offline']", "npm"),
        ("javascript", {"tokenizer.js": "require('fs').writeFileSync('PWNED', '')\n"}, "['node', folder + '/tokenizer.js']", "node"),
        ("sqlite", {"schema.sql": f".shell {SHELL}\n"}, "['sqlite3', ':memory:', '.read ' + folder + '/schema.sql']", "sqlite3"),
        ("gdb", {".gdbinit": f"shell {SHELL}\n"}, "['gdb', '-batch', '-x', folder + '/.gdbinit']", "gdb"),
        ("vim", {"README.vim": f"!{SHELL}\n"}, "['vim', '-es', '-S', folder + '/README.vim', '-c', 'qa!']", "vim"),
        ("git_monitor", {".git/HEAD": "ref: refs/heads/main\n", ".git/config": f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"touch {here}; false\"\n", ".git/objects/x": "", ".git/refs/x": "", "README.md": "x\n"},
         "['git', '-C', folder, '-c', 'safe.directory=*', 'status']", "git"),
        ("git_hook", {".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\trepositoryformatversion = 0\n", ".git/objects/x": "", ".git/refs/x": "",
                      ".git/hooks/pre-commit": f"#!/bin/sh\ntouch {here}\n"},
         "['sh', '-c', 'cd ' + folder + ' && chmod +x .git/hooks/* && git -c user.name=a -c user.email=a@b -c safe.directory=* commit -q --allow-empty -m x']", "git"),
        ("git_filter", {".git/HEAD": "ref: refs/heads/main\n", ".git/config": f"[core]\n\trepositoryformatversion = 0\n[filter \"lfs\"]\n\tclean = \"touch {here}; cat\"\n", ".git/objects/x": "", ".git/refs/x": "",
                        ".gitattributes": "*.safetensors filter=lfs diff=lfs merge=lfs -text\n", "a.safetensors": "x"}, "['git', '-C', folder, '-c', 'safe.directory=*', 'add', '.']", "git"),
    ):
        yield Case("shell_" + name, "shell", files, f"import subprocess, shutil\nassert shutil.which('{tool}'), 'no {tool}'\nsubprocess.run({load})")


def cases() -> Iterator[Case]:
    yield from transformers_code()
    yield from python_folders()
    yield from archives()
    yield from shells()
