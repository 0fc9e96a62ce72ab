#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""msprobe-mpi in several processes of one machine: the files, the text and the status of the plain program, and an end in
good order where a process is killed.

usage: mpi.py MSPROBE MSPROBE_MPI|- DATA GENERATE
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import harness

PROCESSES = (1, 2, 4)
# Behind a status that is not 0 Open MPI's launcher would wait for two seconds, also where all processes have ended.
AT_ONCE = {"OMPI_MCA_odls_base_sigkill_timeout": "0"}


def launcher(program):
    """The words that start processes of the MPI which the program is linked with, and what they need beside it."""
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    mpich = "libmpich" in linked
    for name in ("mpiexec.mpich", "mpiexec.hydra", "mpiexec") if mpich else ("mpirun.openmpi", "mpirun"):
        if shutil.which(name):
            break
    else:
        raise harness.Skip("no mpirun for the MPI of msprobe-mpi")
    # More processes than cores, as root in a container, and no machine beside this one.
    variables = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "OMPI_MCA_plm_rsh_agent": "true",
        "OMPI_MCA_btl": "self,vader",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    }
    return [name], variables


class Job:
    """A command in a new folder, run by the plain program or by several processes."""

    def __init__(self, msprobe, program):
        self.msprobe = msprobe
        self.program = program

    def words(self, processes, arguments):
        start, variables = launcher(self.program)
        return [*start, "-n", str(processes), self.program, *map(str, arguments)], variables

    def run(self, folder, processes, arguments):
        """Status, standard output, standard error and files; names without the times in them."""
        folder.mkdir()
        if processes == 0:
            result = harness.run(self.msprobe, [*map(str, arguments), "-j", "2"], folder)
        else:
            words, variables = self.words(processes, [*arguments, "-j", "2"])
            result = harness.run(words[0], words[1:], folder, env={**variables, **AT_ONCE})
        return result.returncode, untimed(result.stdout), untimed(result.stderr), files_in(folder)


def untimed(text):
    return re.sub(r"_\d{14,}", "_TIME", text)


def files_in(folder):
    return {
        untimed(str(path.relative_to(folder))): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def write_steps(generate, scratch, kind, steps=2, **options):
    """Both sides, of several steps."""
    for step in range(steps):
        words = [part for name, value in options.items() for part in (f"--{name}", str(value)) if value is not True]
        words += [f"--{name}" for name, value in options.items() if value is True]
        made = scratch / f"made{step}"
        subprocess.run([sys.executable, generate, kind, made, "--seed", str(step + 1), *words], check=True, capture_output=True)
        for side in ("target", "golden"):
            (scratch / side).mkdir(exist_ok=True)
            (made / side / "step0").rename(scratch / side / f"step{step}")
    return ["-tp", scratch / "target", "-gp", scratch / "golden"]


def make_tests(msprobe, program, data, generate):
    golden = harness.data(f"{data}/golden", "ckpt", "compare")
    program = program if program == "-" else str(pathlib.Path(program).resolve())
    job = Job(msprobe, program)
    tests = []
    runs = 0

    def test(name):
        def add(body):
            def checked(scratch):
                if program == "-":
                    raise harness.Skip("built without MPI")
                body(scratch)

            tests.append((name, checked))

        return add

    def same_everywhere(scratch, *arguments, status=0):
        """Every number of processes gives what the plain program gives."""
        nonlocal runs
        runs += 1
        right = job.run(scratch / f"plain{runs}", 0, arguments)
        harness.check_equal("status of the plain program", right[0], status)
        for processes in PROCESSES:
            got = job.run(scratch / f"{processes}processes{runs}", processes, arguments)
            what = f"{processes} processes"
            harness.check_equal(f"{what}: status, {got[2]}", got[0], right[0])
            harness.check_equal(f"{what}: standard output", got[1], right[1])
            harness.check_equal(f"{what}: files", sorted(got[3]), sorted(right[3]))
            for file, content in right[3].items():
                harness.check(got[3][file] == content, f"{what}: {file} has other bytes")
            # mpirun has its own words on processes that do not end with 0.
            lines = got[2].splitlines()
            missing = [line for line in right[2].splitlines() if line not in lines]
            harness.check_equal(f"{what}: lines that are missing", missing, [])
            if status == 0:
                harness.check_equal(f"{what}: standard error", got[2], right[2])
        return right

    @test("compare: several steps and ranks, every format")
    def _(scratch):
        pair = write_steps(generate, scratch, "statistics", ranks=5, apis=60)
        formats = "csv,xlsx,json,jsonl,html,md,junit,sarif,github"
        right = same_everywhere(scratch, "compare", *pair, "-o", "out", "--format", formats)
        harness.check(len(right[3]) == 45, f"files: {sorted(right[3])}")

    @test("compare: tensors, with the culprit")
    def _(scratch):
        pair = write_steps(generate, scratch, "tensor", ranks=3, apis=24, mib=0.015625, fault=True)
        right = same_everywhere(scratch, "compare", *pair, "-o", "out", "--format", "csv,html")
        harness.check(right[1].startswith("culprit: "), right[1])

    @test("compare: a rank that is too large for one process is measured in parts")
    def _(scratch):
        pair = write_steps(generate, scratch, "tensor", steps=1, ranks=1, apis=24, mib=1, tensors=2)
        plan = harness.run(msprobe, ["compare", *map(str, pair), "--dry-run", "4"], scratch).stdout
        harness.check("part 2 of 2 of its tensors" in plan and "\nthen 1 units" in plan, plan)
        same_everywhere(scratch, "compare", *pair, "-o", "out", "--format", "csv,html")

    @test("compare: one file, standard output, an explanation")
    def _(scratch):
        pair = write_steps(generate, scratch, "statistics", ranks=3, apis=20)
        for form in ("csv", "xlsx", "json", "jsonl", "html", "md"):
            same_everywhere(scratch, "compare", *pair, "--output-file", f"one.{form}", "--format", form)
        same_everywhere(scratch, "compare", *pair, "-o", "-")
        same_everywhere(scratch, "compare", *pair, "-o", "-", "--format", "html")
        same_everywhere(scratch, "compare", *pair, "--explain", "Functional.linear.0.forward")

    @test("compare -da")
    def _(scratch):
        for case in ("da_comm", "da_mid"):
            folder = golden / "compare" / case
            same_everywhere(scratch, "compare", "-tp", folder / "target", "-gp", folder / "golden", "-o", "out", "-da")

    @test("compare: a broken rank is a failed one")
    def _(scratch):
        pair = write_steps(generate, scratch, "statistics", steps=1, ranks=3, apis=20)
        broken = scratch / "target" / "step0" / "rank1" / "dump.json"
        broken.write_bytes(broken.read_bytes()[:1000])
        right = same_everywhere(scratch, "compare", *pair, "-o", "out", status=2)
        harness.check("step0/rank1: " in right[2] and "failed: 1 of " in right[1], right)

    @test("an error in the command line is reported once")
    def _(scratch):
        pair = write_steps(generate, scratch, "statistics", steps=1, ranks=3, apis=20)
        for words in (["compare", *pair, "-o", "out", "--by", "nothing"], ["compare", "-tp", "absent", "-gp", "absent"],
                      ["compare", "--absent"]):
            right = same_everywhere(scratch, *words, status=2)
            got = job.run(scratch / f"again{len(words)}", 4, words)
            for line in right[2].splitlines():
                harness.check_equal(f"how often '{line}' is there", got[2].splitlines().count(line), 1)

    @test("nan_analyze and overflow_check")
    def _(scratch):
        made = scratch / "made"
        subprocess.run([sys.executable, generate, "anomaly", made, "--ranks", "6", "--apis", "200"], check=True, capture_output=True)
        for command in ("nan_analyze", "overflow_check"):
            same_everywhere(scratch, command, "-i", made / "step0", "-o", "out", "--format", "jsonl")
            same_everywhere(scratch, command, "-i", made, "-o", "-", "--levels")

    @test("merge_result")
    def _(scratch):
        merge = golden / "compare" / "merge_result"
        same_everywhere(scratch, "merge_result", "-i", merge / "input", "-o", "out", "-config", merge / "config_all.yaml",
                        "--format", "xlsx,csv,json")

    @test("ckpt_compare")
    def _(scratch):
        checkpoints = golden / "ckpt" / "checkpoints"
        same_everywhere(scratch, "ckpt_compare", checkpoints / "tp1pp1", checkpoints / "tp2pp2", "-o", "out.json", "--details",
                        "details.csv")

    @test("commands that share nothing run once")
    def _(scratch):
        same_everywhere(scratch, "inspect", golden / "compare" / "stats_pairs" / "target", "--json")
        same_everywhere(scratch, "--version")
        same_everywhere(scratch, "compare", "--help")

    def on_two_machines(scratch, *arguments):
        """Each of two processes runs in a separate folder, as on the disk of its machine."""
        words, variables = job.words(2, arguments)
        place = 'cd "$MACHINES/${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" && exec "$0" "$@"'
        words[-len(arguments) - 1:-len(arguments) - 1] = ["sh", "-c", place]
        folder = scratch / "both"
        folder.mkdir(exist_ok=True)
        result = harness.run(words[0], words[1:], folder, env={**variables, **AT_ONCE, "MACHINES": str(scratch)})
        return result.returncode, result.stdout, untimed(result.stderr)

    def spread_out(scratch, names, places):
        """Ranks of a tree in ./all, each with the machines that have it."""
        for name in names:
            for rank, machines in places(name).items():
                for machine in machines:
                    target = scratch / str(machine) / name / "step0" / rank
                    shutil.copytree(scratch / "all" / name / "step0" / rank, target)

    @test("--local: each machine has its ranks")
    def _(scratch):
        (scratch / "all").mkdir()
        write_steps(generate, scratch / "all", "statistics", steps=1, ranks=4, apis=20)
        spread_out(scratch, ("target", "golden"), lambda _: {"rank0": [0], "rank1": [0, 1], "rank2": [1], "rank3": [1]})
        words = ["compare", "-tp", "target", "-gp", "golden", "--format", "csv,html"]
        right = harness.run(msprobe, [*words, "-o", str(scratch / "plain")], scratch / "all")
        status, _, said = on_two_machines(scratch, *words, "-o", str(scratch / "out"), "--local")
        harness.check_equal(f"status, {said}", status, 0)
        harness.check_equal("standard error", said, untimed(right.stderr).replace(str(scratch / "plain"), str(scratch / "out")))
        harness.check_equal("files", files_in(scratch / "out") == files_in(scratch / "plain"), True)
        for _ in range(5):  # also where all that the first process sees is done before the other one asks
            status, _, said = on_two_machines(scratch, *words, "-o", str(scratch / "out"))
            harness.check_equal(f"without --local: status, {said}", status, 2)
            harness.check("process 1 on " in said and "sees different files than process 0" in said, said)

    @test("--local: a rank that no process sees, and one whose sides are on two machines")
    def _(scratch):
        (scratch / "all").mkdir()
        write_steps(generate, scratch / "all", "statistics", steps=1, ranks=4, apis=20)
        places = {
            "target": {"rank0": [0], "rank1": [0], "rank2": [1], "rank3": [1]},
            "golden": {"rank0": [0], "rank1": [1], "rank2": [1]},
        }
        spread_out(scratch, places, places.get)
        status, answer, said = on_two_machines(scratch, "compare", "-tp", "target", "-gp", "golden", "-o", str(scratch / "out"), "--local")
        harness.check_equal(f"status, {said}", status, 2)
        harness.check("not compared: step0/rank3: only in target" in answer, answer)
        harness.check("rank1: no process can read both target/step0/rank1/dump.json (on " in said, said)
        harness.check_equal("files", len(files_in(scratch / "out")), 2)

    @test("a process that sees nothing does not help, and a message names it")
    def _(scratch):
        (scratch / "all").mkdir()
        write_steps(generate, scratch / "all", "statistics", steps=1, ranks=2, apis=20)
        spread_out(scratch, ("target", "golden"), lambda _: {"rank0": [0], "rank1": [0]})
        (scratch / "1").mkdir()
        words = ["compare", "-tp", "target", "-gp", "golden"]
        right = harness.run(msprobe, [*words, "-o", str(scratch / "plain")], scratch / "all")
        for local, told in (([], "takes no part: target"), (["--local"], "target: not found on ")):
            out = scratch / ("out" + "".join(local))
            status, _, said = on_two_machines(scratch, *words, "-o", str(out), *local)
            harness.check_equal(f"status, {said}", status, right.returncode)
            harness.check(told in said, said)
            harness.check_equal("files", files_in(out) == files_in(scratch / "plain"), True)

    @test("--local: ranks of one name that are not the same")
    def _(scratch):
        (scratch / "all").mkdir()
        write_steps(generate, scratch / "all", "statistics", steps=1, ranks=1, apis=20)
        spread_out(scratch, ("target", "golden"), lambda _: {"rank0": [0, 1]})
        dump = scratch / "1" / "target" / "step0" / "rank0" / "dump.json"
        dump.write_bytes(dump.read_bytes().replace(b"Mean", b"mean", 1))
        words = ["compare", "-tp", "target", "-gp", "golden", "-o", str(scratch / "out"), "--local"]
        status, _, said = on_two_machines(scratch, *words)
        harness.check_equal(f"status, {said}", status, 2)
        harness.check("target/step0/rank0/dump.json: differs between " in said, said)
        harness.check_equal("files", (scratch / "out").exists(), False)

    @test("--local: a step on one machine, a dump root on the other")
    def _(scratch):
        (scratch / "all").mkdir()
        write_steps(generate, scratch / "all", "statistics", steps=1, ranks=1, apis=20)
        spread_out(scratch, ["golden"], lambda _: {"rank0": [0, 1]})
        shutil.copytree(scratch / "all" / "target", scratch / "0" / "target")
        shutil.copytree(scratch / "all" / "target" / "step0", scratch / "1" / "target")
        status, _, said = on_two_machines(scratch, "compare", "-tp", "target", "-gp", "golden", "-o", str(scratch / "out"), "--local")
        harness.check_equal(f"status, {said}", status, 2)
        harness.check("target: must be the same kind of dump on all machines" in said, said)
        harness.check_equal("files", (scratch / "out").exists(), False)

    @test("--local: nan_analyze")
    def _(scratch):
        made = scratch / "all" / "dump"
        subprocess.run([sys.executable, generate, "anomaly", made, "--ranks", "4", "--apis", "200"], check=True, capture_output=True)
        spread_out(scratch, ["dump"], lambda _: {f"rank{number}": [number % 2] for number in range(4)})
        words = ["nan_analyze", "-i", "dump/step0", "-o", "-"]
        right = harness.run(msprobe, words, scratch / "all")
        status, out, said = on_two_machines(scratch, *words, "--local")
        harness.check_equal(f"status, {said}", status, right.returncode)
        harness.check_equal("standard output", out, right.stdout)

    @test("--dry-run: the plan, and nothing else")
    def _(scratch):
        pair = write_steps(generate, scratch, "tensor", ranks=3, apis=24, mib=0.015625, fault=True)
        result = harness.run(msprobe, ["compare", *map(str, pair), "-o", "out", "--dry-run", "2"], scratch, status=0)
        harness.check("3 units" in result.stdout and "% of their time" in result.stdout, result.stdout)
        harness.check(not (scratch / "out").exists(), "the output folder is there")

    def workers(number):
        """Processes of ours that compute; each has a guard of the same program above it."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                variables = (folder / "environ").read_bytes().split(b"\0")
                same = (folder / "exe").resolve() == pathlib.Path(program).resolve()
                parent = re.search(r"^PPid:\t(\d+)", (folder / "status").read_text(), re.M).group(1)
                above = pathlib.Path("/proc", parent, "exe").resolve() == pathlib.Path(program).resolve()
            except OSError:
                continue
            ours = any(f"{name}={number}".encode() in variables for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK"))
            if same and above and ours and f"MSPROBE_TEST_JOB={os.getpid()}".encode() in variables:
                found.append(int(folder.name))
        return found

    def disturbed(scratch, number, action):
        """A job in which something happens when all processes have begun: its status, its words and its files."""
        pair = write_steps(generate, scratch, "statistics", steps=1, ranks=4, apis=800)
        words, variables = job.words(2, ["compare", *pair, "-o", "out", "--format", "csv,html"])
        folder = scratch / "run"
        folder.mkdir()
        variables = {**harness.environment(msprobe, folder), **variables, "MSPROBE_TEST_JOB": str(os.getpid())}
        with subprocess.Popen(words, cwd=folder, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
            deadline = time.monotonic() + harness.TIME_LIMIT_S
            while not (found := workers(number)) or not (folder / "out").exists():
                harness.check(time.monotonic() < deadline and running.poll() is None, "the process was not to be seen")
                time.sleep(0.002)
            action(running, found[0])
            said = running.communicate(timeout=harness.TIME_LIMIT_S)[1]
        while workers(0) + workers(1):
            harness.check(time.monotonic() < deadline, "processes stay")
            time.sleep(0.01)
        return running.returncode, said, files_in(folder), pair

    def check_files(scratch, files, pair):
        """The files that are there are whole."""
        right = job.run(scratch / "right", 0, ["compare", *pair, "-o", "out", "--format", "csv,html"])[3]
        for file, content in files.items():
            harness.check(right.get(file) == content, f"{file} is half or has a temporary name")

    for number in (0, 1):

        @test(f"process {number} is killed")
        def _(scratch, number=number):
            status, said, files, pair = disturbed(scratch, number, lambda _, process: os.kill(process, signal.SIGKILL))
            # MPICH's launcher has to see the signal itself where the process had not joined the job yet.
            early = [signal.SIGKILL] if "mpich" in launcher(program)[0][0] else []
            harness.check(status in [2, *early], f"status {status}, {said}")
            lines = [line for line in said.splitlines() if line.startswith("msprobe")]
            harness.check(len(lines) == 1 and f"process {number} " in lines[0] and "signal 9" in lines[0], said)
            check_files(scratch, files, pair)

    @test("Ctrl-C ends all processes")
    def _(scratch):
        status, said, files, pair = disturbed(scratch, 1, lambda running, _: running.send_signal(signal.SIGINT))
        harness.check(status != 0, said)
        check_files(scratch, files, pair)

    @test("the plain program has no MPI")
    def _(scratch):
        linked = subprocess.run(["ldd", msprobe], capture_output=True, text=True, check=True).stdout
        harness.check("mpi" not in linked, linked)

    return tests


if __name__ == "__main__":
    harness.main(make_tests)
