# SPDX-License-Identifier: Apache-2.0
"""Task acc_check over the network: `msprobe acc_check --listen` judges, and the training does not notice."""

import glob
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

from helpers import *
from msprobe.core import command
from msprobe.core.common import log
from msprobe.core.common.exceptions import MsprobeException
from msprobe.pytorch import online_check
from msprobe.pytorch.online_check import sender, wire
from prepared import interpreter
from trainings import Training, read_rows, without_own_errors

HERE = os.path.dirname(os.path.abspath(__file__))
WRONG = ["Functional.softmax.0", "Functional.silu.1", "Functional.linear.13"]  # of the Llama, in the order of execution


def make_certificates(folder):
    """As docs/online-check.md has it."""
    with open(os.path.join(HERE, "../../docs/online-check.md"), encoding="utf-8") as file:
        script = re.search(r"```\n(openssl req .*?)```", file.read(), re.DOTALL).group(1)
    os.makedirs(folder)
    script = script.replace("DNS:judge.example", "DNS:localhost, IP:127.0.0.1")
    subprocess.run(["bash", "-ec", script], cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return folder


class Listener:
    """`msprobe acc_check --listen` at a free port, or at this one."""

    def __init__(self, results, *options, port=0, python=None, **keys):
        self.process = subprocess.Popen(
            [command.find(), "acc_check", "--listen", "localhost:%d" % port, "-o", results, "--python",
             python or interpreter(), "--fail-on", "error", *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, env={**os.environ, "TMPDIR": results},
            **keys)
        first = self.process.stdout.readline()
        found = re.fullmatch(r"online pre-check: listens at 127\.0\.0\.1:([0-9]+)(, without TLS)?\n", first)
        assert found, first + self.process.stdout.read()
        self.port = int(found.group(1))
        self.address = "localhost:%d" % self.port

    def end(self):
        """Its output, when all trainings have ended."""
        # Not communicate() with a timeout: it reads the descriptor and loses what the readline() before it has buffered.
        timer = threading.Timer(120, self.process.kill)
        timer.start()
        try:
            told = self.process.stdout.read()
            self.process.wait()
        finally:
            timer.cancel()
        return told

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.end()


class Network(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._certificates = tempfile.TemporaryDirectory()
        cls.tls = make_certificates(cls._certificates.name + "/tls")

    @classmethod
    def tearDownClass(cls):
        cls._certificates.cleanup()
        super().tearDownClass()

    def listen(self, *options, port=0):
        self.results = tempfile.mkdtemp(prefix="results", dir=self.folder)
        listener = Listener(self.results, *options, port=port)

        self.addCleanup(listener.kill)
        return listener

    def start_training(self, kind, precision, health, steps, section=None, **environment):
        section = None if section is None else {"budget": None, **section}
        return Training(self.folder, kind, precision, health, steps, section, environment)

    def ended(self, training):
        """Its digest and random numbers, and its stderr."""
        printed, told = training.end()
        return printed[:2], told

    def run_steps(self, steps, section, between=lambda step: None):
        """The losses and gradients of a small training in this process, and what it told."""
        told = []
        with mock.patch.object(log, "_write", lambda kind, text: told.append(kind + text)):
            debugger = None if section is None else self.open("L1", "acc_check", {"budget": None, **section}, risk_level="ALL")
            torch.manual_seed(1)
            model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3))
            seen = []
            for step in range(steps):
                between(step)
                if debugger is not None:
                    debugger.start(model)
                loss = model(torch.randn(5, 6)).square().sum()
                loss.backward()
                if debugger is not None:
                    debugger.stop()
                    debugger.step()
                seen.append([loss.item()] + [one.grad.clone() for one in model.parameters()])
                model.zero_grad()
                with torch.no_grad():
                    for one in model.parameters():
                        one.add_(torch.randn(one.shape), alpha=0.01)
            if debugger is not None:
                PrecisionDebugger.close()
        return seen, told

    def assert_same(self, left, right):
        self.assertEqual(len(left), len(right))
        for one, other in zip(left, right):
            self.assertEqual(one[0], other[0])
            for a, b in zip(one[1:], other[1:]):
                self.assertTrue(torch.equal(a, b))

    @staticmethod
    def wait_for(condition):
        end = time.monotonic() + 60
        while not condition():
            if time.monotonic() > end:
                raise AssertionError("it did not happen")
            time.sleep(0.05)


class SameRows(Network):
    def test_over_tls_as_in_the_process(self):
        listener = self.listen("--tls", self.tls)
        sent = self.start_training("llama", "float32", "faulty", 8,
                                   {"server": listener.address, "tls_path": self.tls, "compare": True})
        inside = self.start_training("llama", "float32", "faulty", 8, {"compare": True})
        printed, told = self.ended(sent)
        self.assertEqual((printed, ), (self.ended(inside)[0], ))
        self.assertEqual(printed, self.ended(self.start_training("llama", "float32", "faulty", 8))[0])
        self.assertNotIn("warning", told)
        told = listener.end()
        self.assertEqual(listener.process.returncode, 1, told)
        self.assertEqual([line.split()[1] for line in told.splitlines() if line.startswith("  error")], WRONG, told)
        self.assertEqual(told.count(", since step 5, right until step 4 (3 of 8 calls)\n"), 3, told)
        files = [glob.glob(folder + "/proc*/accuracy_checking_result_*.csv")[0] for folder in (self.results, inside.dump_path)]
        rows, other_rows = map(read_rows, files)
        self.assertEqual(rows, other_rows)
        self.assertEqual({name for name, row in rows.items() if "error" in row["Forward Verdict"]}, set(WRONG))
        tables = []
        for folder in (self.results, inside.dump_path):
            with open(glob.glob(folder + "/proc*/compare_result_*.csv")[0], encoding="utf-8", newline="") as file:
                tables.append(sorted(file))
        self.assertEqual(*tables)
        self.assertEqual(sorted(name for name in os.listdir(self.results) if name.startswith("step")), ["step5", "step6"])

    def test_two_ranks(self):
        listener = self.listen()
        digests = []
        for section in ({"host": "localhost", "port": listener.port}, None):
            store = os.path.join(self.folder, "store%d" % len(digests))
            ranks = [self.start_training("vit", "amp", "faulty", 7, section, RANK_OF_TWO=str(rank), STORE=store)
                     for rank in range(2)]
            digests.append([self.ended(rank)[0] for rank in ranks])
        self.assertEqual(digests[0], digests[1])
        told = listener.end()
        wrong = ["Functional.layer_norm.0", "Functional.linear.1", "Functional.gelu.1"]
        named = [line.split()[1] for line in told.splitlines() if line.startswith("  error")]
        self.assertEqual(without_own_errors(named, "amp", wrong), wrong, told)
        self.assertEqual(told.count("warning: online pre-check of rank 1, step 5: "), 3, told)
        self.assertIn("online pre-check of rank 0: ", told)
        rows = [read_rows(glob.glob(self.results + "/rank%d/accuracy_checking_result_*.csv" % rank)[0]) for rank in range(2)]
        errors = [[name for name, row in one.items() if "error" in row["Forward Verdict"]] for one in rows]
        self.assertEqual([len(without_own_errors(names, "amp", wrong)) for names in errors], [0, 3])
        self.assertEqual(set(rows[0]), set(rows[1]))


class Outages(Network):
    def test_the_server_ends_and_comes_back(self):
        plain, _ = self.run_steps(12, None)
        listener = self.listen("--tls", self.tls)
        first_results = self.results
        servers = [listener]

        def between(step):
            judge = online_check.task.judge
            if step == 3:
                self.wait_for(lambda: judge._judged == judge._sent and not judge._queue)
                listener.kill()
                self.wait_for(lambda: not judge._is_connected)
                self.wait_for(lambda: not glob.glob(self.results + "/msprobe-*"))  # what waited was removed
            if step == 6:
                servers.append(self.listen("--tls", self.tls, port=listener.port))
                self.wait_for(lambda: judge._is_connected)

        seen, told = self.run_steps(12, {"server": listener.address, "tls_path": self.tls}, between)
        self.assert_same(seen, plain)
        warnings = [line for line in told if line.startswith("warning")]
        self.assertEqual(len(warnings), 1, told)
        self.assertRegex(warnings[0], "warning: task acc_check: the connection to localhost:[0-9]+ was lost: .*: nothing is judged until it can be reached again")
        self.assertEqual([line for line in told if line.endswith("judges again")],
                         ["task acc_check: %s judges again" % listener.address])
        text = servers[1].end()
        self.assertEqual(servers[1].process.returncode, 0, text)
        self.assertIn(" of steps 6 to 11, by PyTorch ", text)
        self.assertIn(" operations pass, 0 error, 0 warning", text)
        self.assertTrue(glob.glob(first_results + "/proc*/accuracy_checking_result_*.csv"))

    def test_no_server_is_one_warning(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        plain, _ = self.run_steps(3, None)
        # The training sits out no time limit of the sender. These are ten times as long here: a busy machine takes less.
        waits = {name: 10 * getattr(sender, name) for name in ("_LONGEST_START", "_LONGEST_CONNECT", "_LONGEST_SILENCE",
                                                              "_LONGEST_PAUSE")}
        began = time.monotonic()
        with mock.patch.multiple(sender, **waits):
            seen, told = self.run_steps(3, {"server": "localhost:%d" % port})
        self.assertLess(time.monotonic() - began, 80)
        self.assert_same(seen, plain)
        self.assertEqual([line for line in told if line.startswith("warning")],
                         ["warning: task acc_check: localhost:%d cannot be reached: Connection refused: nothing is judged until it "
                          "can be" % port])

    def test_ctrl_c_at_the_server(self):
        listener = self.listen()
        judge = []

        def between(step):
            if step == 2:
                judge.append(online_check.task.judge)
                self.wait_for(lambda: judge[0]._judged == judge[0]._sent and not judge[0]._queue)
                judge.append(listener.interrupt())

        _, told = self.run_steps(3, {"server": listener.address}, between)
        self.assertEqual(listener.process.returncode, 130, judge[1])
        self.assertIn(" of steps 0 to 1, by PyTorch ", judge[1])
        self.assertEqual([name for name in os.listdir(self.results) if not name.startswith("proc")], [])
        self.assertEqual(sum(line.startswith("warning") for line in told), 1, told)

    def test_what_does_not_fit_waits(self):
        listener = self.listen()
        with mock.patch.object(sender, "_MOST_WAITING", 100):
            _, told = self.run_steps(3, {"server": listener.address})
        self.assertEqual(told.count("warning: task acc_check: %s takes fewer calls than the training makes: some wait for later steps"
                                    % listener.address), 1, told)
        self.assertRegex(told[-1] + told[-2], "[0-9]+ did not fit and waited for a later step")


class Refusals(Network):
    def refused(self, listener, section):
        seen, told = self.run_steps(2, {"server": listener.address, **section})
        self.assert_same(seen, self.run_steps(2, None)[0])
        warnings = [line for line in told if line.startswith("warning")]
        self.assertEqual(len(warnings), 1, told)
        return warnings[0], listener.interrupt()

    def test_certificates_of_another_authority(self):
        other = make_certificates(self.folder + "/other")
        own, told = self.refused(self.listen("--tls", self.tls), {"tls_path": other})
        self.assertRegex(own, "its certificate is refused: .*: nothing is judged any more")
        self.assertRegex(told, "warning: 127.0.0.1:[0-9]+: the other side refuses the certificate")

    def test_a_client_of_another_authority(self):
        other = make_certificates(self.folder + "/other")
        for name in ("client.crt", "client.key"):
            os.remove(os.path.join(other, name))
            os.symlink(os.path.join(self.tls, name), os.path.join(other, name))
        listener = self.listen("--tls", other)
        mixed = tempfile.mkdtemp(dir=self.folder)
        for name, folder in (("ca.crt", other), ("client.crt", self.tls), ("client.key", self.tls)):
            os.symlink(os.path.join(folder, name), os.path.join(mixed, name))
        own, told = self.refused(listener, {"tls_path": mixed})
        self.assertRegex(own, "refuses the certificate or TLS itself .*: nothing is judged any more")
        self.assertRegex(told, "warning: 127.0.0.1:[0-9]+: its certificate is refused: ")

    def test_another_host_name(self):
        context = wire.tls_context(self.tls, "client")
        listener = self.listen("--tls", self.tls)
        with socket.create_connection(("127.0.0.1", listener.port)) as plain:
            with self.assertRaises(ssl.SSLCertVerificationError):
                context.wrap_socket(plain, server_hostname="elsewhere")

    def test_a_revoked_certificate(self):
        script = """
touch index; printf '[ca]\\ndefault_ca=a\\n[a]\\ndatabase=index\\ndefault_md=sha256\\ndefault_crl_days=30\\n' > ca.cnf
openssl ca -config ca.cnf -revoke client.crt -cert ca.crt -keyfile ca.key
openssl ca -config ca.cnf -gencrl -cert ca.crt -keyfile ca.key -out crl.pem
"""
        folder = make_certificates(self.folder + "/revoking")
        subprocess.run(["bash", "-ec", script], cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        listener = self.listen("--tls", folder)
        os.remove(folder + "/crl.pem")
        _, told = self.refused(listener, {"tls_path": folder})
        self.assertIn("its certificate is refused: certificate revoked", told)

    def test_one_side_without_tls(self):
        own, told = self.refused(self.listen("--tls", self.tls), {})
        self.assertIn("cannot be reached: it ends the connection before its greeting, perhaps because it listens with "
                      "certificates (--tls), for which there is tls_path", own)
        self.assertIn("does not speak TLS", told)
        own, told = self.refused(self.listen(), {"tls_path": self.tls})
        self.assertIn("cannot be reached: it ends the connection before its greeting, perhaps because it listens without "
                      "certificates (--tls)", own)
        self.assertIn("it speaks TLS, for which --tls names certificates", told)

    def test_another_version(self):
        listener = self.listen()
        with mock.patch.object(wire, "VERSION", 7):
            own, told = self.refused(listener, {})
        self.assertRegex(own, r"it speaks version 1 of the protocol \(.*\), and this msprobe version 7: install the same release on "
                              "both sides: nothing is judged any more")
        self.assertRegex(told, r"warning: 127.0.0.1:[0-9]+: it speaks version 7 of the protocol \(.*\), and this msprobe version 1: "
                               "install the same release on both sides\n")

    def test_other_machines_need_certificates(self):
        status, _, told = command.ask(["acc_check", "--listen", "0.0.0.0:0", "-o", self.folder, "--python", sys.executable])
        self.assertEqual((status, told.splitlines()[0]),
                         (2, "msprobe: error: 0.0.0.0 is not a loopback address: other machines can connect only with "
                             "certificates, whose folder --tls names"))
        with self.assertRaisesRegex(MsprobeException, "192.0.2.1 is another machine, to which tensors are sent only with "
                                                      "certificates: tls_path"):
            self.open("L1", "acc_check", {"server": "192.0.2.1:9000"})
        with self.assertRaisesRegex(MsprobeException, "none/ca.crt: No such file or directory"):
            self.open("L1", "acc_check", {"server": "localhost:9000", "tls_path": "none"})

    def test_invalid_values(self):
        for section, text in (({"server": "judge"}, "server: must be a host and a port"),
                              ({"server": "a:1", "host": "b"}, "server: is given besides host"),
                              ({"server": "a:1", "nfs_path": "b"}, "server: is given besides nfs_path"),
                              ({"host": "b"}, "port: is missing beside host"), ({"port": 65536}, "port: must be at most 65535")):
            with self.assertRaisesRegex(MsprobeException, text):
                self.open("L1", "acc_check", section)


    def test_options_that_mean_nothing_for_a_running_training(self):
        for option in (["-n", "2"], ["-config", "x.json"], ["--references", "x.yaml"], ["-save_error_data"], ["--release", "8"],
                       ["--jit_compile"], ["--filter_api"], ["--recorded"]):
            for source in (["--listen", "localhost:0"], ["-api_info", self.folder]):
                status, _, told = command.ask(["acc_check", *source, *option, "-o", self.folder + "/results"])
                self.assertEqual((status, len(told.splitlines())), (2, 1), told)
                self.assertIn("the trainings say what is judged, and how", told)
                self.assertIn(option[0], told)
        self.assertFalse(os.path.exists(self.folder + "/results"))


if __name__ == "__main__":
    unittest.main()
