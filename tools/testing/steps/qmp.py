#!/usr/bin/python3 -IS
# SPDX-License-Identifier: GPL-2.0
"""Has a QEMU do something, by its QMP socket.

Usage: qmp.py SOCKET stop|cont|quit|status
       qmp.py SOCKET migrate URI	waits for its end; prints the downtime and the whole time, in ms
"""

import json
import socket
import sys
import time


class Qmp:
    def __init__(self, path):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(path)
        self.file = sock.makefile("rw")
        json.loads(self.file.readline())
        self("qmp_capabilities")

    def __call__(self, command, **arguments):
        self.file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.file.flush()
        while True:
            answer = json.loads(self.file.readline())
            if "error" in answer:
                sys.exit(f"qmp.py: {command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]


def migrate(qmp, uri):
    qmp("migrate", uri=uri)
    while True:
        info = qmp("query-migrate")
        # The times are known a moment later.
        if info.get("status") == "completed" and info["total-time"]:
            return f"{info['downtime']} {info['total-time']}"
        if info.get("status") in ("failed", "cancelled"):
            sys.exit(f"qmp.py: migrate to {uri}: {info.get('error-desc', info['status'])}")
        time.sleep(0.1)


def main():
    qmp = Qmp(sys.argv[1])
    what = sys.argv[2]
    if what == "migrate":
        print(migrate(qmp, sys.argv[3]))
    elif what == "status":
        print(qmp("query-status")["status"])
    else:
        qmp(what)


main()
