# SPDX-License-Identifier: Apache-2.0
"""Details files of chance: in/random_npu.csv, in/random_gpu.csv. What the Python tool 26.2.0 makes of them
(`api_precision_compare -npu in/random_npu.csv -gpu in/random_gpu.csv`) is 26.2.0/random_{details,result}.csv."""

import csv
import pathlib
import random

COLUMNS = [
    "API Name", "Bench Dtype", "DEVICE Dtype", "Shape", "余弦相似度", "最大绝对误差", "双百指标", "双千指标", "双万指标",
    "二进制一致错误率", "误差均衡性", "均方根误差", "小值域错误占比", "相对误差最大值", "相对误差平均值", "inf/nan错误率",
    "相对误差错误率", "绝对误差错误率", "ULP误差最大值", "ULP误差平均值", "ULP误差大于阈值占比", "Status", "Message",
]
FIGURES = COLUMNS[4:21]
BENCHMARK = ["误差均衡性", "均方根误差", "小值域错误占比", "相对误差最大值", "相对误差平均值"]
APIS = ["tanh", "embedding", "sum", "add", "relu", "matmul", "conv2d", "topk", "layer_norm", "linalg.inv", "eq"]
TYPES = [*["torch.float16", "torch.bfloat16", "torch.float32"] * 4, "torch.int64", "torch.float64", "torch.bool", " ",
         "torch.float8_e5m2", "<class 'int'>", "torch.complex64"]
ODD = ["nan", "inf", "-inf", " ", "0", "0", "0.5", "1e-300", "1e308", "abc"]
chance = random.Random(31)


def number():
    if chance.random() < 0.12:
        return chance.choice(ODD)
    return f"{chance.choice([0.0, chance.random(), chance.random() / 1000, chance.random() * 100, -0.5, 0.5]):.14f}"


def rows_of(index):
    kind, api = chance.choice(["Torch", "Tensor", "Functional", "NPU"]), chance.choice(APIS)
    for direction in chance.choice([["forward"], ["forward", "backward"], ["backward"]]):
        for output in range(chance.choice([1, 1, 1, 2, 3])):
            device = dict.fromkeys(COLUMNS, " ")
            device["API Name"] = f"{kind}.{api}.{index}.{direction}.output.{output}"
            device["DEVICE Dtype"] = chance.choice(TYPES)
            device["Shape"] = chance.choice(["(2, 3)"] * 9 + ["(0,)", "()", "(0, 2)"])
            device["Message"] = chance.choice([" ", "why", "a, b"])
            other = dict(device)
            share = chance.random()
            for name in FIGURES if share < 0.2 else BENCHMARK if share < 0.7 else chance.sample(FIGURES, 6):
                device[name] = number()
                other[name] = number() if chance.random() < 0.7 else device[name]
            yield device, other if chance.random() > 0.02 else None


pairs = [pair for index in range(120) for pair in rows_of(index)]
others = [other for _, other in pairs if other]
chance.shuffle(others)
for name, rows in {"npu": [device for device, _ in pairs], "gpu": others}.items():
    path = pathlib.Path(__file__).parent / "in" / f"random_{name}.csv"
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
