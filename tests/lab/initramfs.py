# SPDX-License-Identifier: MIT
"""An initramfs: a cpio archive in the "newc" format (Documentation/driver-api/early-userspace/buffer-format.rst
of Linux), made of files of which nobody else needs to know."""

DIRECTORY, REGULAR = 0o040000, 0o100000


class Archive:
    def __init__(self):
        self.parts, self.names = [], set()

    def _entry(self, name, mode, content):
        number = len(self.names)
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08x" % f for f in fields) + name.encode() + b"\0"
        self.parts += [head, b"\0" * (-len(head) % 4), content, b"\0" * (-len(content) % 4)]

    def _folder_of(self, path):
        folder = path.rpartition("/")[0]
        if folder and folder not in self.names:
            self._folder_of(folder)
            self.names.add(folder)
            self._entry(folder[1:], DIRECTORY | 0o755, b"")

    def add(self, path, content, mode):
        """A file by its absolute path, with the folders above it. The same one twice is one."""
        if path in self.names:
            return
        self._folder_of(path)
        self.names.add(path)
        self._entry(path[1:], REGULAR | mode, content)

    def bytes(self):
        return b"".join(self.parts) + Archive._trailer()

    @staticmethod
    def _trailer():
        end = Archive()
        end._entry("TRAILER!!!", 0, b"")
        return b"".join(end.parts)
