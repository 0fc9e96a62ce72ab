# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that looks at the HTML report, for its test and for the picture in the README."""

import atexit
import functools
import json
import os
import pathlib
import shutil
import time

from harness import Skip, check, check_equal

LOADS_WITHIN_S = 120


@functools.cache
def chromium():
    """The driver of the one Chromium of this process, whose start takes longer than most tests."""
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        raise Skip("Selenium is missing (Debian: python3-selenium)") from None
    driver = shutil.which("chromedriver")
    program = shutil.which("chromium")
    if driver is None or program is None:
        raise Skip("Chromium or its driver is missing (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium has none for root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    atexit.register(started.quit)
    return started


class Browser:
    """A tab. Use it in a `with` block. Skip is raised where Chromium, its driver or Selenium is missing."""

    def __init__(self, width=1280, height=800, dark=False, scale=1):
        self.driver = chromium()
        self.driver.switch_to.new_window("tab")
        for log in ("browser", "performance"):
            self.driver.get_log(log)  # those of other tabs
        self.size(width, height, scale)
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]},
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.close()
        self.driver.switch_to.window(self.driver.window_handles[0])

    def size(self, width, height, scale=1):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False},
        )

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, what, condition, seconds=10):
        """Until the script gives something true, which is returned."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(f"return {condition}")
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"{what} did not happen within {seconds} s")
            time.sleep(0.02)

    def open(self, page, address=""):
        """Returns the milliseconds from the start of loading until the page can be used. `address` begins with #."""
        self.driver.get("about:blank")  # another address of the same page would not load it
        self.driver.get(pathlib.Path(page).resolve().as_uri() + address)
        return int(self.wait("loading", "document.body.dataset.ready", LOADS_WITHIN_S))

    def keys(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains

        actions = ActionChains(self.driver)
        for key in keys:
            actions.send_keys(key)
        actions.perform()

    def click(self, selector, at=None):
        """In the middle of an element, or at a place in it."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.common.action_chains import ActionChains

        for again in (True, True, False):
            found = self.driver.find_element("css selector", selector)
            actions = ActionChains(self.driver, duration=0)  # the pointer is there at once
            try:
                if at is None:
                    actions.move_to_element(found)
                else:
                    box = found.rect
                    actions.move_to_element_with_offset(found, at[0] - box["width"] / 2, at[1] - box["height"] / 2)
                return actions.click().perform()
            except StaleElementReferenceException:  # the page drew it anew before the pointer moved
                if not again:
                    raise

    def clipboard(self):
        """The text that pasting it into a field of the page gives."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        self.run("const field = document.createElement('textarea'); field.id = 'pasted'; document.body.append(field); field.focus()")
        ActionChains(self.driver).key_down(Keys.CONTROL).send_keys("v").key_up(Keys.CONTROL).perform()
        return self.run("const field = document.getElementById('pasted'); field.remove(); return field.value")

    def overlapping(self, selector):
        """Pairs of elements that lie over each other though neither is within the other, as texts."""
        return self.run(
            "const all = [...document.querySelectorAll(arguments[0])].filter((one) => one.getClientRects().length > 0);"
            "const told = (one) => one.id || one.textContent.slice(0, 40) || one.tagName;"
            "const box = (one) => one.getBoundingClientRect();"
            "return all.flatMap((a, i) => all.slice(i + 1).filter((b) => !a.contains(b) && !b.contains(a) &&"
            " Math.min(box(a).right, box(b).right) - Math.max(box(a).left, box(b).left) > 1 &&"
            " Math.min(box(a).bottom, box(b).bottom) - Math.max(box(a).top, box(b).top) > 1).map((b) => [told(a), told(b)]))",
            selector)

    def sticking_out(self, selector, of):
        """Elements that are not wholly within the nearest element around them that `of` selects, as texts."""
        return self.run(
            "return [...document.querySelectorAll(arguments[0])].filter((one) => {"
            " const [a, b] = [one, one.parentElement.closest(arguments[1])].map((it) => it.getBoundingClientRect());"
            " return one.getClientRects().length > 0 && (a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1);"
            "}).map((one) => one.id || one.textContent.slice(0, 40) || one.tagName)", selector, of)

    def too_wide(self):
        """The number of pixels by which the page is wider than the window."""
        return self.run("return document.documentElement.scrollWidth - innerWidth")

    def complaints(self):
        """Messages of level SEVERE on the console."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def requests(self):
        """Addresses that were asked for, but for the page itself and data it brought along."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return [url for url in found if not url.startswith(("file:///", "data:", "blob:"))], found


def check_quiet(browser):
    """The console has no error, and the page requested nothing from elsewhere."""
    check_equal("console", browser.complaints(), [])
    foreign, all_requests = browser.requests()
    check_equal("requests", foreign, [])
    check(all_requests, "the log of requests has the page itself")
    check_equal("resources", browser.run("return performance.getEntriesByType('resource').map(r => r.name)"), [])
