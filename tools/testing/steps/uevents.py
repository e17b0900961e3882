#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints the kernel's block events as they come: action, path, type, RESIZE."""

import os
import socket

sock = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 15)
sock.bind((os.getpid(), 1))
print("listening", flush=True)
while True:
    text = sock.recv(65536).decode(errors="replace").split("\0")
    event = dict(line.split("=", 1) for line in text[1:] if "=" in line)
    if event.get("SUBSYSTEM") == "block":
        print(event["ACTION"], event["DEVPATH"], event.get("DEVTYPE", "-"),
              "RESIZE" if event.get("RESIZE") else "", flush=True)
