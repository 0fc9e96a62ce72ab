# SPDX-License-Identifier: Apache-2.0
"""The messages between a training and the process that judges it over the network, and how they authenticate each
other.

data/precheck/PROTOCOL.md describes it. The command contains this file, too: the standard library alone.
"""

import ipaddress
import json
import os
import socket
import ssl
import struct

MAGIC = b"MSPROBE\n"
VERSION = 1
FIRST = struct.Struct(">8sII")    # MAGIC, VERSION, bytes of JSON that follow: the same in all versions
FRAME = struct.Struct(">BI")      # kind, bytes that follow
COUNT = struct.Struct(">Q")
TENSORS, NEXT, MESSAGE, END, JUDGED, DONE, REFUSED = range(1, 8)
LONGEST_FIRST = 4096
LONGEST_TENSORS = 1 << 18
LONGEST_MESSAGE = 4 << 20
LONGEST_TEXT = 1000
MOST_OF_A_MESSAGE = 1 << 30       # limit for the bytes of its tensors


class Unsuitable(Exception):
    """The reason why listening or connecting in this way is impossible."""


def tls_context(folder, side):
    """Returns the TLS context for side "server" or "client". Both sides show certificates of ca.crt. Raises Unsuitable."""
    def beside(name):
        path = os.path.join(folder, name)
        try:
            with open(path, "rb"):
                return path
        except OSError as error:
            raise Unsuitable("%s: %s" % (path, error.strerror)) from None

    def no_phrase():
        raise Unsuitable("%s needs a pass phrase, which msprobe cannot ask for" % key)

    authority, certificate, key = beside("ca.crt"), beside(side + ".crt"), beside(side + ".key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if side == "server" else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    path = certificate
    try:
        context.load_cert_chain(certificate, key, no_phrase)
        path = authority
        context.load_verify_locations(authority)
        path = os.path.join(folder, "crl.pem")
        if os.path.exists(path):
            context.load_verify_locations(path)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise Unsuitable("%s: %s" % (path, reason_of(error))) from None
    return context


def is_loopback(address):
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def named(address):
    """Returns the text of a socket's address: 127.0.0.1:80, [::1]:80."""
    host, port = address[:2]
    return ("[%s]:%d" if ":" in host else "%s:%d") % (host, port)


def reason_of(error):
    """One line on an error of a socket."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "its certificate is refused: %s" % error.verify_message
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or str(error)).replace("_", " ").lower()
        if reason in ("wrong version number", "http request"):
            return "the other side does not speak TLS"
        if "alert" in reason:
            return "the other side refuses the certificate or TLS itself (%s)" % reason
        if reason.startswith("peer did not return a certificate"):
            return "it shows no certificate"
        return "TLS: %s" % reason
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def first_frame(content):
    text = json.dumps(content).encode()
    return FIRST.pack(MAGIC, VERSION, len(text)) + text


def frame(kind, content=b""):
    return FRAME.pack(kind, len(content)) + content


def keep_alive(plain):
    """Makes the system detect that the other machine is gone."""
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 20), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            plain.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
