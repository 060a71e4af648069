"""An upstream in Python: the standard library's server. Its argument is the port."""

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

seen = {}  # requests of each user to /limited


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b"", **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/limited":
            user = self.headers.get("X-User", "")
            seen[user] = seen.get(user, 0) + 1
            if seen[user] > 3:
                self.answer(429, b"slow down\n", Retry_After="30")
            else:
                self.answer(200, b"served\n")
        elif self.path == "/large":
            self.answer(200, b"x" * (32 << 20))
        elif self.path == "/stream":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for _ in range(3):
                self.wfile.write(b"6\r\npiece\n\r\n")
                time.sleep(0.5)
            self.wfile.write(b"0\r\n\r\n")
        elif self.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b"half")
            self.wfile.flush()
            self.close_connection = True
        else:
            self.answer(200, b"hello\n")

    def do_PUT(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            total = 0
            while size := int(self.rfile.readline(), 16):
                total += len(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
        else:
            total = len(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        self.answer(200, b"%d\n" % total)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
