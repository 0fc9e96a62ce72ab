# SPDX-License-Identifier: Apache-2.0
"""dump_enable: the configuration file is read again while the training runs."""

from helpers import *


class Reload(Case):
    def change(self, **keys):
        self.config.update(keys)
        self.write_config(self.config)

    def iterate(self, debugger):
        debugger.start()
        torch.sigmoid(torch.ones(3))
        debugger.stop()
        debugger.step()

    def test_switched_off_and_on(self):
        original = torch.sigmoid
        debugger = self.open("L1", dump_enable=True)
        self.iterate(debugger)
        self.change(dump_enable=False)
        self.iterate(debugger)
        self.iterate(debugger)
        self.assertIs(torch.sigmoid, original)
        self.assertEqual(self.steps(), ["step0"])
        self.change(dump_enable=True)
        self.iterate(debugger)
        self.assertEqual(self.steps(), ["step0", "step3"])

    def test_every_step_is_switched_by_itself(self):
        debugger = self.open("L1", dump_enable=False)
        for step in range(8):
            self.change(dump_enable=step in (2, 3, 6))
            self.iterate(debugger)
        self.assertEqual(self.steps(), ["step2", "step3", "step6"])

    def test_broken_file(self):
        debugger = self.open("L1", dump_enable=True)
        self.iterate(debugger)
        with open(self.config_path, "w", encoding="utf-8") as file:
            file.write("{ not json")
        self.iterate(debugger)
        self.assertEqual(self.steps(), ["step0"])

    def test_disabled_from_the_start(self):
        original = torch.sigmoid
        debugger = self.open("L1", dump_enable=False)
        self.assertIs(torch.sigmoid, original)
        self.iterate(debugger)
        self.assertEqual(self.steps(), [])

    def test_steps_exhausted_and_opened_again(self):
        debugger = self.open("L1", dump_enable=True, step=[0])
        self.iterate(debugger)
        self.iterate(debugger)
        self.assertEqual(self.steps(), ["step0"])
        self.change(step=[])
        self.iterate(debugger)
        self.assertEqual(len(self.steps()), 2)

    def test_level_changes(self):
        debugger = self.open("L1", dump_enable=True)
        self.iterate(debugger)
        self.change(level="mix")
        net = make_net()
        debugger.start(model=net)
        net(make_input())
        debugger.stop()
        step = self.steps()[-1]
        self.assertIn("Module.out.Linear.forward.0", find_tree(self.dump_path, int(step[4:])).names)


if __name__ == "__main__":
    unittest.main()
